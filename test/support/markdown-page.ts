/** Reads the parts of documents that tests check: tables, code blocks, links, headings. */

export interface MarkdownTable {
  readonly columns: readonly string[]
  readonly rows: readonly Readonly<Record<string, string>>[]
}

export interface CodeBlock {
  /** The word after the opening fence, '' without one. */
  readonly language: string
  readonly text: string
  /** Where the block begins in the page, in characters. */
  readonly start: number
}

const FENCE = /^```(\S*)\n([^]*?)^```$/gm
const INLINE_CODE = /`[^`\n]*`/g

/** The table whose first column has this name. @throws RangeError when the page has none or several */
export function tableOf(page: string, firstColumn: string): MarkdownTable {
  const found = tables(page).filter(({ columns }) => columns[0] === firstColumn)
  const [table] = found
  if (table === undefined || found.length > 1) throw new RangeError(`${found.length} tables begin with the column "${firstColumn}"`)
  return table
}

export function rowsOf(page: string, firstColumn: string): MarkdownTable['rows'] {
  return tables(page)
    .filter(({ columns }) => columns[0] === firstColumn)
    .flatMap(({ rows }) => rows)
}

/** The part of a page below a heading, up to the next heading of the same or a higher level. @throws RangeError without the heading */
export function sectionOf(page: string, heading: string): string {
  const lines = page.split('\n')
  const level = /^#+(?= )/.exec(heading)?.[0].length ?? 0
  const start = lines.indexOf(heading)
  if (level === 0 || start < 0) throw new RangeError(`no heading "${heading}"`)
  const length = lines.slice(start + 1).findIndex((line) => /^#+(?= )/.test(line) && line.indexOf(' ') <= level)
  return lines.slice(start + 1, length < 0 ? undefined : start + 1 + length).join('\n')
}

export function tables(page: string): MarkdownTable[] {
  const blocks = [...withoutCode(page).matchAll(/(?:^\|.*\|$\n?)+/gm)].map(([block]) => block.trim().split('\n').map(cellsOf))
  return blocks.map(([columns = [], , ...lines]) => ({
    columns,
    rows: lines.map((cells) => Object.fromEntries(columns.map((column, i) => [column, cells[i] ?? '']))),
  }))
}

export function codeSpans(text: string): string[] {
  return [...text.matchAll(INLINE_CODE)].map(([span]) => span.slice(1, -1))
}

export function codeBlocks(page: string): CodeBlock[] {
  return [...page.matchAll(FENCE)].map(({ index, 1: language = '', 2: text = '' }) => ({ language, text, start: index }))
}

/** Targets of all links, as written: `../a.md#b`, `https://…`. */
export function linkTargets(page: string): string[] {
  return [
    ...withoutCode(page)
      .replaceAll(INLINE_CODE, '')
      .replaceAll(/\[`|`\]/g, '')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ].map(([, target = '']) => target)
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchors(page: string): Set<string> {
  const headings = [...withoutCode(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, text = '']) => text)
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

function withoutCode(page: string): string {
  return page.replaceAll(FENCE, '')
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))
}
