/**
 * `make picture`: records a session and draws docs/first-key.svg: `make run`, the Secret, a call, a limit, a suspension and its end.
 * Every output is real; the program runs on a free port, which the picture shows as 8080. Log lines are left out, and of answers the JSON around
 * the text. Only the times until a change takes effect differ between two runs.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from './support/documents.ts'
import { StandaloneProcess } from './support/standalone-process.ts'
import { waitFor } from './support/wait-for.ts'

interface TerminalLine {
  readonly kind: 'command' | 'output' | 'good' | 'bad' | 'note'
  readonly text: string
}

const OUT = join(ROOT, 'docs/first-key.svg')
const MANIFESTS = 'examples/standalone'
const SHOWN_URL = 'http://127.0.0.1:8080'
const READY = /^ApiKey demo\/first-key is ready:$/m
/** The command that `make run` prints, without the JSON around the answer. */
const ASK = [
  `curl -sS -w '\\nHTTP %{http_code}\\n' ${SHOWN_URL}/v1/chat/completions \\`,
  `    -H "Authorization: Bearer $(cat .headgate/secrets/demo/first-key/SERVICE_API_KEY)" \\`,
  `    -d '{"model":"llama","messages":[{"role":"user","content":"Good morning!"}]}' |`,
  `    grep -oE '"(content|message)":"[^"]*"|HTTP.*'`,
].join('\n')
const KEY = `${MANIFESTS}/apikey.yaml`
const SHOW = `grep -v '#' ${KEY}`
const SECRET = 'ls -C -w 90 .headgate/secrets/demo/first-key'
const edit = (from: string, to: string): string => `sed -i 's/${from}/${to}/' ${KEY}`
const LIMIT = edit('^spec:', 'spec:\\n  limits: { requestsPerMinute: 1 }')
const SUSPEND = edit('^spec:', 'spec:\\n  state: Suspended')
const RESUME = `sed -i '/state:/d; /limits:/d' ${KEY}`
const run = promisify(execFile)

const command = (text: string): TerminalLine => ({ kind: 'command', text: `$ ${text}` })
const note = (text: string): TerminalLine => ({ kind: 'note', text: `# ${text}` })
const output = (text: string): TerminalLine[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => ({ kind: line === 'HTTP 200' ? 'good' : line.startsWith('HTTP ') ? 'bad' : 'output', text: line }))

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-picture-'))
  mkdirSync(join(folder, MANIFESTS), { recursive: true })
  for (const name of ['apikey.yaml', 'model.yaml']) cpSync(join(ROOT, MANIFESTS, name), join(folder, MANIFESTS, name))
  const program = new StandaloneProcess(folder, { MANIFESTS })
  try {
    await program.printed(READY)
    const lines = await record(folder, program.output)
    const credential = program.credential('demo/first-key')
    const svg = terminalSvg('A key in Headgate: created, used, suspended', lines)
    if (svg.includes(credential)) throw new Error('the picture would show the value of the key')
    writeFileSync(OUT, svg)
    process.stdout.write(`${lines.map(({ text }) => text).join('\n')}\npicture: ${OUT}\n`)
  } finally {
    await program.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function record(folder: string, printed: string): Promise<TerminalLine[]> {
  const [, url = ''] = /running at (http:\/\/127\.0\.0\.1:\d+)\/v1/.exec(printed) ?? []
  if (url === '') throw new Error(`make run has printed no address:\n${printed}`)
  const shell = async (text: string): Promise<string> => {
    const { stdout } = await run('bash', ['-c', text.replaceAll(SHOWN_URL, url)], { cwd: folder })
    return stdout.replaceAll(url, SHOWN_URL)
  }
  const ask = (): Promise<string> => shell(ASK)
  /** Pastes a command, and asks until the answer has the status: `make run` reads the folder every half second. */
  const change = async (text: string, status: number): Promise<TerminalLine[]> => {
    await shell(text)
    const startMs = performance.now()
    const answer = await waitFor(`HTTP ${status}`, async () => {
      const answered = await ask()
      return answered.includes(`HTTP ${status}`) && answered
    })
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
    return [...step(text), note(`${seconds} s later`), command('ask'), ...output(answer)]
  }
  const manifest = [...step(SHOW), ...output(await shell(SHOW))]
  const secret = [...step(SECRET), ...output(await shell(SECRET))]
  const first = [...step('ask'), ...output(await ask())]
  const limited = await change(LIMIT, 429)
  const suspended = await change(SUSPEND, 401)
  const resumed = await change(RESUME, 200)
  return [
    ...manifest.slice(1),
    ...step('make run'),
    ...output(bannerOf(printed).replaceAll(url, SHOWN_URL)),
    ...[BLANK, note('in a second terminal; ask is the printed curl command')],
    ...secret.slice(1),
    ...[first, limited, suspended, resumed].flat(),
  ]
}

const BLANK: TerminalLine = { kind: 'output', text: '' }

/** A command after a blank line. */
function step(text: string): TerminalLine[] {
  return [BLANK, command(text)]
}

function bannerOf(printed: string): string {
  const end = READY.exec(printed)
  const text = printed.slice(0, (end?.index ?? 0) + (end?.[0].length ?? 0))
  const [curl = ''] = /^ {2}curl [^]*?\n(?=\n)/m.exec(printed.slice(text.length)) ?? []
  return `${text}\n${curl}`
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('{'))
    .join('\n')
}

const COLUMNS = 104
const CHARACTER_WIDTH = 8.4
const LINE_HEIGHT = 20
const MARGIN = 20
const BAR_HEIGHT = 36
const WIDTH = Math.ceil(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN)
/** Colours on a dark page. Programs without media queries also show these. */
const DARK = { command: '#e6edf3', output: '#9da7b3', good: '#3fb950', bad: '#ff7b72', note: '#79c0ff', page: '#0d1117', frame: '#30363d' }
const LIGHT = { command: '#1f2328', output: '#57606a', good: '#1a7f37', bad: '#cf222e', note: '#0969da', page: '#ffffff', frame: '#d0d7de' }

/** Draws the session readably on light and on dark pages. Lines that are too long are cut with an ellipsis. */
function terminalSvg(title: string, lines: readonly TerminalLine[]): string {
  const height = BAR_HEIGHT + lines.length * LINE_HEIGHT + MARGIN
  const dots = [0, 1, 2].map((i) => `  <circle class="frame-fill" cx="${MARGIN + i * 18}" cy="${BAR_HEIGHT / 2}" r="6"/>`)
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    `  <title>${escaped(title)}</title>`,
    `  <desc>${escaped(lines.map(({ text }) => text).join('\n'))}</desc>`,
    `  <style>`,
    ...rulesOf(DARK).map((rule) => `    ${rule}`),
    `    text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 14px; white-space: pre }`,
    `    @media (prefers-color-scheme: light) {`,
    ...rulesOf(LIGHT).map((rule) => `      ${rule}`),
    `    }`,
    `  </style>`,
    `  <rect class="page frame" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>`,
    ...dots,
    ...lines.flatMap(({ kind, text }, i) => {
      const visible = text.length > COLUMNS ? `${text.slice(0, COLUMNS - 1)}…` : text
      const place = `x="${MARGIN}" y="${BAR_HEIGHT + (i + 0.7) * LINE_HEIGHT}" textLength="${(visible.length * CHARACTER_WIDTH).toFixed(1)}"`
      return visible.trim() === '' ? [] : [`  <text class="${kind}" xml:space="preserve" ${place}>${escaped(visible)}</text>`]
    }),
    `</svg>`,
  ].join('\n')}\n`
}

function rulesOf({ page, frame, ...kinds }: typeof DARK): string[] {
  const texts = Object.entries(kinds).map(([kind, colour]) => `.${kind} { fill: ${colour} }`)
  return [`.page { fill: ${page} }`, `.frame { stroke: ${frame} }`, `.frame-fill { fill: ${frame} }`, ...texts]
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

await main()
