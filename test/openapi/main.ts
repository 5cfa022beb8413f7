/**
 * `make openapi`: requests at random by docs/openapi.yaml (schemathesis), to the program of `make run` with a real Redis. Exit code 1 after an answer
 * that the document does not describe, an error of 5xx, or an operation that never answered 200. README.md says more.
 */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { tableOf } from '../bench/part.ts'
import { withCheckedStreams } from '../support/checked-streams.ts'
import { described } from '../support/described-api.ts'
import { runPrepared } from '../support/prepared-namespace.ts'
import { type FuzzedGateway, MODEL, startFuzzedGateway } from './fuzzed-gateway.ts'
import { failuresOf, rowsOf, type Tally } from './tally.ts'

const ROOT = join(import.meta.dirname, '../..')
const DOCUMENT = join(ROOT, 'docs/openapi.yaml')
const CHECKS = [
  ...['not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_headers_conformance'],
  ...['response_schema_conformance', 'negative_data_rejection', 'positive_data_acceptance'],
]
/** The key of a request follows from its content. A name that stands here more often gets more requests. */
const SHARES = ['whole', 'whole', 'whole', 'whole', 'whole', 'narrow', 'slow', 'poor', 'suspended'] as const

const say = (line: string): void => void process.stdout.write(`${line}\n`)

interface Run {
  readonly seed: number
  readonly examples: number
  readonly python: string
  /** Holds what is kept of the run. */
  readonly folder: string
}

async function main(python: string): Promise<number> {
  const folder = join(ROOT, '.headgate/openapi', new Date().toISOString().replaceAll(/[:.]/g, '-'))
  const run: Run = { seed: wholeNumber('SEED', randomInt(1, 2 ** 31)), examples: wholeNumber('EXAMPLES', 100), python, folder }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return withCheckedStreams({ folder, mustHaveSome: true, run: () => allRequests(run) })
}

async function allRequests(run: Run): Promise<number> {
  const startedMs = Date.now()
  say(`openapi: SEED=${run.seed}, EXAMPLES=${run.examples} for each operation`)
  const failures = (await isValid(run)) ? await fuzz(run) : ['docs/openapi.yaml is not a valid OpenAPI document']
  for (const line of failures) say(`FAILED: ${line}`)
  say(
    `openapi: ${failures.length} failures in ${Math.round((Date.now() - startedMs) / 1000)} s; SEED=${run.seed}; logs are in ${run.folder}`,
  )
  return failures.length > 0 ? 1 : 0
}

/** @throws RangeError that names the variable */
function wholeNumber(name: string, otherwise: number): number {
  const text = process.env[name] || String(otherwise)
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new RangeError(`${name}: "${text}" is not a whole number above 0`)
  return Number(text)
}

async function isValid({ python, folder }: Run): Promise<boolean> {
  return (await runProgram([python, '-m', 'openapi_spec_validator', DOCUMENT], join(folder, 'validator.log'))) === 0
}

async function fuzz(run: Run): Promise<string[]> {
  await using parts = new AsyncDisposableStack()
  const gateway = await startFuzzedGateway(run.folder, parts)
  const tallyFile = join(run.folder, 'statuses.json')
  const code = await schemathesis(run, gateway, tallyFile)
  writeFileSync(join(run.folder, 'headgate.log'), gateway.log())
  const tally = JSON.parse(readFileSync(tallyFile, 'utf8')) as Tally // hooks.py wrote it
  for (const line of ['', ...tableOf(rowsOf(tally)), '']) say(line)
  const operations = Object.entries(described.paths).flatMap(([path, of]) => Object.keys(of).map((one) => `${one.toUpperCase()} ${path}`))
  const failures = [...failuresOf(tally, operations), ...keysIn(run.folder, gateway)]
  return code === 0 ? failures : [...failures, `schemathesis ended with code ${code}; what it found is above`]
}

function schemathesis({ python, seed, examples, folder }: Run, { url, keys }: FuzzedGateway, tallyFile: string): Promise<number> {
  const config = join(import.meta.dirname, 'schemathesis.toml')
  const program = [python, '-m', 'schemathesis.cli', '--config-file', config, 'run', DOCUMENT, '--url', url, '--checks', CHECKS.join(',')]
  const flags = ['--max-examples', String(examples), '--seed', String(seed), '--generation-database', 'none', '--no-color']
  const env = {
    ...{ SCHEMATHESIS_HOOKS: 'hooks', PYTHONPATH: import.meta.dirname, PYTHONDONTWRITEBYTECODE: '1' },
    ...{ HEADGATE_MODEL: MODEL, HEADGATE_TALLY: tallyFile, HEADGATE_KEYS: JSON.stringify(SHARES.map((name) => keys.get(name))) },
  }
  const argv = [...program, ...flags, '--phases', 'examples,coverage,fuzzing', '--continue-on-failure']
  return runProgram(argv, join(folder, 'schemathesis.log'), env, keys)
}

/** Runs a program whose output is printed and kept, without the values of keys. @returns its exit code */
async function runProgram(
  [command = '', ...args]: readonly string[],
  logFile: string,
  env: Readonly<Record<string, string>> = {},
  keys: ReadonlyMap<string, string> = new Map(),
): Promise<number> {
  const own = { PATH: process.env['PATH'], HOME: process.env['HOME'], COLUMNS: '160', ...env }
  const cwd = mkdtempSync(join(tmpdir(), 'headgate-openapi-')) // schemathesis keeps requests in its folder
  const child = spawn(command, args, { cwd, env: own, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    const shown = [...keys].reduce((text, [name, value]) => text.replaceAll(value, `<key ${name}>`), line)
    lines.push(shown)
    say(shown)
  }
  writeFileSync(logFile, `${lines.join('\n')}\n`)
  const [code] = (await ended) as [number | null]
  rmSync(cwd, { recursive: true, force: true })
  return code ?? 1
}

/** A kept file with the value of a key is a failure. */
function keysIn(folder: string, { keys }: FuzzedGateway): string[] {
  const files = readdirSync(folder, { withFileTypes: true }).filter((file) => file.isFile())
  return files.flatMap(({ name }) => {
    const text = readFileSync(join(folder, name), 'utf8')
    return [...keys].filter(([, value]) => text.includes(value)).map(([key]) => `${name} has the value of the key ${key}`)
  })
}

if (import.meta.main) {
  const prepare = join(import.meta.dirname, 'prepare.sh')
  process.exitCode = await runPrepared({ script: import.meta.filename, args: [], prepare, run: main })
}
