/**
 * Runs test layers one after the other, each with the parts that it needs, and ends with one line of totals.
 *
 *   node test/run-layers.ts LAYER... [test files]     run; layers: unit contract property integration e2e
 *   node test/run-layers.ts --total                   only print the report of $HEADGATE_SUMMARY
 *
 * $HEADGATE_SUMMARY names a file to which each layer's result is appended, so that several runs can be added up (`.ci/run`).
 * A layer whose parts are not available counts as one skip and prints `SKIPPED: reason`. Exit code 1 after any failure.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunCounts } from './support/layer-reporter.ts'

const ROOT = join(import.meta.dirname, '..')
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const LAYERS = ['unit', 'contract', 'property', 'integration', 'e2e'] as const
type Layer = (typeof LAYERS)[number]

/** Exit code by which `prepare.sh` says that the layer cannot run here; the reason is in $HEADGATE_SKIP_FILE. */
const CANNOT_RUN = 3

interface LayerResult extends RunCounts {
  readonly layer: string
  readonly seconds: number
}

const isLayer = (text: string): text is Layer => (LAYERS as readonly string[]).includes(text)

async function main(args: readonly string[]): Promise<number> {
  const summary = process.env.HEADGATE_SUMMARY
  if (args[0] === '--total') return finish(summary ? readResults(summary) : [])
  const layers = args.filter(isLayer)
  const files = args.filter((arg) => !isLayer(arg))
  const results: LayerResult[] = []
  for (const layer of layers) {
    process.stdout.write(`\n== ${layer} ==\n`)
    const result = await runLayer(layer, files)
    if (summary) appendFileSync(summary, `${JSON.stringify(result)}\n`)
    results.push(result)
  }
  return finish(results)
}

function finish(results: readonly LayerResult[]): number {
  process.stdout.write(`\n${report(results)}\n`)
  return results.some((result) => result.failures.length > 0) ? 1 : 0
}

/** Reads the results of a summary file; if a layer ran twice, its last run counts. */
function readResults(file: string): LayerResult[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  const results = lines.map((line) => JSON.parse(line) as LayerResult) // written by main
  return [...new Map(results.map((result) => [result.layer, result])).values()]
}

export function report(results: readonly LayerResult[]): string {
  const layers = results.map((one) => `${one.layer.padEnd(12)} ${totals([one], 5)} ${one.seconds.toFixed(1).padStart(8)} s`)
  const failures = results.flatMap(({ layer, failures: list }) => list.map((line) => `FAILED: ${layer}: ${line}`))
  const skips = results.flatMap(({ layer, skips: list }) => list.map(({ name, reason }) => `SKIPPED: ${layer}: ${name}: ${reason}`))
  return [...layers, ...failures, ...skips, totals(results)].join('\n')
}

function totals(results: readonly LayerResult[], width = 0): string {
  const sum = (pick: (result: LayerResult) => number): string =>
    `${results.reduce((total, result) => total + pick(result), 0)}`.padStart(width)
  return `${sum((one) => one.passed)} passed, ${sum((one) => one.failures.length)} failed, ${sum((one) => one.skips.length)} skipped`
}

async function runLayer(layer: Layer, files: readonly string[]): Promise<LayerResult> {
  const scratch = mkdtempSync(join(tmpdir(), 'headgate-layer-'))
  const start = performance.now()
  try {
    const prepared = await prepare(layer, scratch)
    if (prepared !== 'ready') return prepared
    const counts = await runVitest(layer, files, scratch)
    const seconds = (performance.now() - start) / 1000
    return { layer, seconds, ...counts }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Builds what the layer needs. @returns its result when it cannot run: a skip where the machine lacks something, else a failure */
async function prepare(layer: Layer, scratch: string): Promise<'ready' | LayerResult> {
  if (layer !== 'integration' && layer !== 'e2e') return 'ready'
  const skipFile = join(scratch, 'skip')
  const code = await run(['bash', 'test/parts/prepare.sh', layer], { HEADGATE_SKIP_FILE: skipFile })
  if (code === 0) return 'ready'
  const reason = existsSync(skipFile) ? readFileSync(skipFile, 'utf8').trim() : ''
  if (code !== CANNOT_RUN || reason === '')
    return { layer, passed: 0, failures: ['its parts could not be made ready'], seconds: 0, skips: [] } // said above
  process.stdout.write(`SKIPPED: ${reason}\n`)
  return { layer, passed: 0, failures: [], seconds: 0, skips: [{ name: `layer ${layer}`, reason }] }
}

async function runVitest(layer: Layer, files: readonly string[], scratch: string): Promise<RunCounts> {
  const countsFile = join(scratch, 'counts.json')
  const mustFind = files.length > 0 ? ['--passWithNoTests=false'] : [] // a misspelt file must not look like success
  const vitest = [process.execPath, VITEST, 'run', '--config', 'test/vitest.config.ts', ...mustFind, ...projectsOf(layer), ...files]
  const inside = layer === 'integration' ? ['bash', 'test/parts/in-netns.sh'] : []
  const code = await run([...inside, ...vitest], { HEADGATE_COUNTS_FILE: countsFile, HEADGATE_FILES: files.join(' ') })
  if (!existsSync(countsFile)) return { passed: 0, failures: ['vitest ended early'], skips: [] } // it has said why
  const counts = JSON.parse(readFileSync(countsFile, 'utf8')) as RunCounts // written by LayerReporter
  return code !== 0 && counts.failures.length === 0 ? { ...counts, failures: [`vitest ended with exit code ${code}`] } : counts // teardown failed, for one
}

function projectsOf(layer: Layer): string[] {
  const last = layer === 'integration' ? ['--project', 'after-integration'] : []
  return ['--project', layer, ...last]
}

/** Runs a command with our terminal and hands it the signals that end us. @returns its exit code, 128 + n after a signal */
function run(argv: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const [command = '', ...args] = argv
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...env } })
  const forward = (signal: NodeJS.Signals) => child.kill(signal)
  process.on('SIGTERM', forward).on('SIGINT', forward)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      process.off('SIGTERM', forward).off('SIGINT', forward)
      resolve(code ?? 128 + (signal === 'SIGINT' ? 2 : 15))
    })
  })
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2))
