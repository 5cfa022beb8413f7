/**
 * `make picture`: records a session – `make run`, a call, a suspension, the same call – and draws docs/first-key.svg.
 * Every output is real; the program runs on a free port, which the picture shows as 8080. Log lines are left out. Only the time until the
 * suspension takes effect differs between two runs.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../support/documents.ts'
import { StandaloneProcess } from '../support/standalone-process.ts'
import { waitFor } from '../support/wait-for.ts'
import { type TerminalLine, terminalSvg } from './terminal-svg.ts'

const OUT = join(ROOT, 'docs/first-key.svg')
const MANIFESTS = 'examples/standalone'
const SHOWN_URL = 'http://127.0.0.1:8080'
const READY = /^ApiKey demo\/first-key is ready:$/m
/** Makes a call, and shows the important part of the answer. */
const ASK = [
  `ask() { curl -sS -w '\\nHTTP %{http_code}\\n' ${SHOWN_URL}/v1/chat/completions \\`,
  `    -H "Authorization: Bearer $(cat .headgate/secrets/demo/first-key/SERVICE_API_KEY)" \\`,
  `    -d '{"model":"llama","messages":[{"role":"user","content":"Good morning!"}]}' |`,
  `    grep -oE '"(content|message)":"[^"]*"|HTTP.*'; }`,
]
const SUSPEND = `sed -i 's/^spec:/spec:\\n  state: Suspended/' ${MANIFESTS}/apikey.yaml`
const SHOW = `grep -v '#' ${MANIFESTS}/apikey.yaml`
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
    const svg = terminalSvg(lines, {
      title: 'A key in Headgate: created, used, suspended',
      description: lines.map(({ text }) => text).join('\n'),
    })
    if (svg.includes(credential)) throw new Error('the picture would show the value of the key')
    writeFileSync(OUT, svg)
    process.stdout.write(`${lines.map(({ text }) => text).join('\n')}\npicture: ${OUT}\n`)
  } finally {
    await program.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs the commands of the session in `folder`, where `make run` has printed `printed`. */
async function record(folder: string, printed: string): Promise<TerminalLine[]> {
  const [, url = ''] = /running at (http:\/\/127\.0\.0\.1:\d+)\/v1/.exec(printed) ?? []
  if (url === '') throw new Error(`make run has printed no address:\n${printed}`)
  const shell = async (text: string): Promise<string> => {
    const { stdout } = await run('bash', ['-c', text.replaceAll(SHOWN_URL, url)], { cwd: folder })
    return stdout.replaceAll(url, SHOWN_URL)
  }
  const ask = (): Promise<string> => shell([...ASK, 'ask'].join('\n'))
  const manifest = await shell(SHOW)
  const first = await ask()
  await shell(SUSPEND)
  const startMs = performance.now()
  const last = await waitFor('401', async () => {
    const answer = await ask()
    return answer.includes('HTTP 401') && answer
  })
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
  return [
    command(SHOW),
    ...output(manifest),
    command('make run'),
    ...output(bannerOf(printed).replaceAll(url, SHOWN_URL)),
    note('in a second terminal'),
    ...ASK.map((text, i) => (i === 0 ? command(text) : { kind: 'command' as const, text })),
    command('ask'),
    ...output(first),
    command(SUSPEND),
    note(`${seconds} s later`),
    command('ask'),
    ...output(last),
  ]
}

/** The lines that the program prints for people, up to the line that says that the key is ready: no log lines, no blank lines. */
function bannerOf(printed: string): string {
  const end = READY.exec(printed)
  const text = printed.slice(0, (end?.index ?? 0) + (end?.[0].length ?? 0))
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('{'))
    .join('\n')
}

await main()
