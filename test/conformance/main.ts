/**
 * `make conformance`: llama.cpp's own server tests, directly against llama-server and through a gateway in front of it. Every test that passes
 * directly must pass through the gateway, except the tests of known-differences.ts. Exit code 1 after a difference. README.md says more.
 *
 *   node test/conformance/main.ts [parts of file names]
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withCheckedStreams } from '../support/checked-streams.ts'
import { runPrepared } from '../support/prepared-namespace.ts'
import { compare, type Comparison, isCompared, isFailure, linesByFile, linesByTest, type TestOutcome } from './compare.ts'
import { type FrontGateway, startFrontGateway } from './front-gateway.ts'
import { KNOWN_DIFFERENCES } from './known-differences.ts'
import { type Prepared, runPytest } from './pytest-run.ts'

const ROOT = join(import.meta.dirname, '../..')
/** A random model sometimes ends an answer early. So a test that failed through the gateway runs again this often. */
const MORE_TRIES = 2
/** A whole run that compares fewer tests than this proves little: the tests or the plugin have changed. */
const FEWEST_COMPARED = 100

const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function main(words: readonly string[], prepared: string): Promise<number> {
  const [tests = '', python = '', llamaHome = ''] = prepared.split(' ')
  const folder = join(ROOT, '.headgate/conformance', new Date().toISOString().replaceAll(/[:.]/g, '-'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const run = (): Promise<number> => compareRuns({ tests, python, llamaHome }, words, folder)
  const code = await withCheckedStreams({ folder, mustHaveSome: words.length === 0, run })
  say(`conformance: logs and the table are in ${folder}`)
  return code
}

async function compareRuns(prepared: Prepared, words: readonly string[], folder: string): Promise<number> {
  const files = chosenFiles(prepared.tests, words)
  const direct = await runPytest(prepared, { name: 'direct', selected: files, logFile: join(folder, 'direct.log') }, say)
  const compared = direct.filter(isCompared).map(({ test }) => test)
  if (compared.length === 0) throw new Error('no test of these files passes directly and calls a route of a gateway')
  const gateway = await startFrontGateway(join(folder, 'standalone'))
  try {
    const through = await throughGateway(prepared, gateway, compared, folder)
    const comparisons = compare(direct, through, KNOWN_DIFFERENCES)
    report(direct, comparisons, folder)
    const isTooFew = words.length === 0 && compared.length < FEWEST_COMPARED
    if (isTooFew) say(`FAILED: only ${compared.length} tests were compared; a whole run compares ${FEWEST_COMPARED} or more`)
    return isTooFew || comparisons.some(isFailure) ? 1 : 0
  } finally {
    await gateway.process.stop()
    writeFileSync(join(folder, 'headgate.log'), gateway.process.output)
    rmSync(join(folder, 'standalone'), { recursive: true, force: true }) // holds the key
  }
}

/** The files whose names contain one of the words; all files without a word. @throws RangeError if there is none */
function chosenFiles(tests: string, words: readonly string[]): string[] {
  const files = readdirSync(join(tests, 'unit'), { encoding: 'utf8' }).filter((name) => /^test_.*\.py$/.test(name))
  const chosen = files.filter((name) => words.length === 0 || words.some((word) => name.includes(word))).toSorted()
  if (chosen.length === 0)
    throw new RangeError(`FILES: no file of llama.cpp's tests has such a name; choose of ${files.toSorted().join(' ')}`)
  return chosen.map((name) => `unit/${name}`)
}

async function throughGateway(prepared: Prepared, gateway: FrontGateway, tests: readonly string[], folder: string): Promise<TestOutcome[]> {
  const outcomes = new Map<string, TestOutcome>()
  const runOnce = async (name: string, selected: readonly string[]): Promise<void> => {
    const logFile = join(folder, `${name.replaceAll(/\W+/g, '-')}.log`)
    for (const one of await runPytest(prepared, { name, selected, logFile, gateway }, say)) outcomes.set(one.test, one)
  }
  await runOnce('gateway', tests)
  for (let n = 1; n <= MORE_TRIES; n += 1) {
    const failed = tests.filter((test) => outcomes.get(test)?.outcome !== 'passed' && !(test in KNOWN_DIFFERENCES))
    if (failed.length > 0) await runOnce(`gateway, try ${n + 1}`, failed)
    for (const test of failed.filter((one) => outcomes.get(one)?.outcome === 'passed')) say(`passed only at try ${n + 1}: ${test}`)
  }
  return [...outcomes.values()]
}

function report(direct: readonly TestOutcome[], comparisons: readonly Comparison[], folder: string): void {
  const listed = comparisons.filter(({ verdict }) => verdict === 'listed')
  const failures = comparisons.filter(isFailure)
  const lines = [
    '',
    ...linesByTest(comparisons),
    '',
    ...linesByFile(direct, comparisons),
    '',
    ...listed.map(({ test }) => `listed: ${test}: ${KNOWN_DIFFERENCES[test]}`),
    ...failures.map(({ test, verdict, why }) => `FAILED: ${verdict}: ${test}${why === '' ? '' : `: ${why}`}`),
    `conformance: ${comparisons.length} tests pass directly; through the gateway ${comparisons.length - listed.length - failures.length} pass, ${listed.length} differ as listed, ${failures.length} differ`,
  ]
  for (const line of lines) say(line)
  writeFileSync(join(folder, 'table.txt'), `${lines.join('\n')}\n`)
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  const prepare = join(import.meta.dirname, 'prepare.sh')
  process.exitCode = await runPrepared({ script: import.meta.filename, args, prepare, run: (prepared) => main(args, prepared) })
}
