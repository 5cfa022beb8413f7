/** Runs llama.cpp's tests once, directly or through a gateway. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { TestOutcome } from './compare.ts'

/** What `prepare.sh` has built. */
export interface Prepared {
  /** Folder of the tests. */
  readonly tests: string
  readonly python: string
  readonly llamaHome: string
}

export interface PytestRun {
  readonly name: string
  /** Files or tests. */
  readonly selected: readonly string[]
  readonly logFile: string
  readonly gateway?: { readonly url: string; readonly credential: string; readonly serverKey: string }
}

const REPORT_FD = 3
const INTERRUPTED = 2
const OPTIONS = ['-p', 'through_gateway', '-p', 'no:cacheprovider', '-q', '--tb=short', '-m', 'not slow']

/** @throws Error if pytest could not run the tests; a failed test is not an error */
export async function runPytest(prepared: Prepared, run: PytestRun, say: (line: string) => void): Promise<TestOutcome[]> {
  const log = openSync(run.logFile, 'w', 0o600)
  const child = spawn(prepared.python, ['-m', 'pytest', ...OPTIONS, ...run.selected], {
    cwd: prepared.tests,
    env: environment(prepared, run.gateway),
    stdio: ['ignore', log, log, 'pipe'],
  })
  closeSync(log)
  const ended = once(child, 'close')
  const outcomes = await readReports(child.stdio[REPORT_FD] as Readable, run.name, say)
  const [code] = (await ended) as [number | null]
  hideCredential(run)
  if (code === null || code >= INTERRUPTED)
    throw new Error(`pytest ended with code ${code}: ${readFileSync(run.logFile, 'utf8').slice(-2_000)}`)
  return outcomes
}

function environment({ tests, llamaHome }: Prepared, gateway: PytestRun['gateway']): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONPATH: `${import.meta.dirname}:${tests}`,
    LLAMA_SERVER_BIN_PATH: join(llamaHome, 'build/bin/llama-server'),
    HEADGATE_MODEL_FILE: join(llamaHome, 'tiny.gguf'),
    HEADGATE_REPORT_FD: String(REPORT_FD),
    ...(gateway === undefined
      ? {}
      : { HEADGATE_URL: gateway.url, HEADGATE_KEY: gateway.credential, HEADGATE_SERVER_KEY: gateway.serverKey }),
  }
}

/** Reads one line of JSON for each test, and says how far the run is after each file. */
async function readReports(stream: Readable, name: string, say: (line: string) => void): Promise<TestOutcome[]> {
  const outcomes: TestOutcome[] = []
  let total = 0
  let file = ''
  const sayFile = (): void => {
    if (file !== '') say(`${name}: ${outcomes.length} of ${total} tests done; ${file}`)
  }
  for await (const line of createInterface({ input: stream })) {
    const report = JSON.parse(line) as { readonly collected: number } | TestOutcome // the plugin wrote it
    if ('collected' in report) {
      total = report.collected
      continue
    }
    const next = report.test.split('::')[0] ?? ''
    if (next !== file) sayFile()
    file = next
    outcomes.push(report)
  }
  sayFile()
  return outcomes
}

/** The log is kept, and a failed test may print its headers. */
function hideCredential({ logFile, gateway }: PytestRun): void {
  if (gateway === undefined) return
  writeFileSync(logFile, readFileSync(logFile, 'utf8').replaceAll(gateway.credential, '<key>'))
}
