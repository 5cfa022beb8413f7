/** Draws a terminal session as an SVG that is readable on light and on dark pages. Pure: the same lines give the same picture. */

/** The kind of a line, which decides its colour. */
export type LineKind = 'command' | 'output' | 'good' | 'bad' | 'note'

/** One line of the session. */
export interface TerminalLine {
  readonly kind: LineKind
  readonly text: string
}

/** The texts of the picture beside the lines. */
export interface TerminalFrame {
  readonly title: string
  /** For people who cannot see the picture. */
  readonly description: string
}

const COLUMNS = 104
const CHARACTER_WIDTH = 8.4
const LINE_HEIGHT = 20
const FONT_SIZE = 14
const MARGIN = 20
const BAR_HEIGHT = 36
const WIDTH = Math.ceil(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN)

/** Colours on a dark page. Programs without media queries also show these. */
const DARK = { page: '#0d1117', frame: '#30363d', command: '#e6edf3', output: '#9da7b3', good: '#3fb950', bad: '#ff7b72', note: '#79c0ff' }
const LIGHT = { page: '#ffffff', frame: '#d0d7de', command: '#1f2328', output: '#57606a', good: '#1a7f37', bad: '#cf222e', note: '#0969da' }

/** @returns the picture, with a line break at its end; lines that are too long are cut with an ellipsis */
export function terminalSvg(lines: readonly TerminalLine[], { title, description }: TerminalFrame): string {
  const height = BAR_HEIGHT + lines.length * LINE_HEIGHT + MARGIN
  const dots = [0, 1, 2].map((i) => `  <circle class="frame-fill" cx="${MARGIN + i * 18}" cy="${BAR_HEIGHT / 2}" r="6"/>`)
  const texts = lines.map(({ kind, text }, i) => textElement(kind, text, BAR_HEIGHT + (i + 0.7) * LINE_HEIGHT))
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    `  <title>${escaped(title)}</title>`,
    `  <desc>${escaped(description)}</desc>`,
    `  <style>`,
    ...rulesOf(DARK).map((rule) => `    ${rule}`),
    `    text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: ${FONT_SIZE}px; white-space: pre }`,
    `    @media (prefers-color-scheme: light) {`,
    ...rulesOf(LIGHT).map((rule) => `      ${rule}`),
    `    }`,
    `  </style>`,
    `  <rect class="page frame" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>`,
    ...dots,
    ...texts.filter((text) => text !== ''),
    `</svg>`,
  ].join('\n')}\n`
}

function rulesOf({ page, frame, ...kinds }: typeof DARK): string[] {
  const texts = Object.entries(kinds).map(([kind, colour]) => `.${kind} { fill: ${colour} }`)
  return [`.page { fill: ${page} }`, `.frame { stroke: ${frame} }`, `.frame-fill { fill: ${frame} }`, ...texts]
}

function textElement(kind: LineKind, text: string, y: number): string {
  const shown = text.length > COLUMNS ? `${text.slice(0, COLUMNS - 1)}…` : text
  if (shown.trim() === '') return ''
  const length = (shown.length * CHARACTER_WIDTH).toFixed(1)
  return `  <text class="${kind}" xml:space="preserve" x="${MARGIN}" y="${y}" textLength="${length}">${escaped(shown)}</text>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
