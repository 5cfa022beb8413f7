/** The result of one test layer, as lines of a summary file, and the totals over several layers. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** Outcome of one layer. `skips` names each test that did not run, with its reason. */
export interface LayerResult {
  readonly layer: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
  readonly skips: ReadonlyArray<{ readonly name: string; readonly reason: string }>
}

/** Adds one result to a summary file (one JSON object per line). */
export function appendResult(file: string, result: LayerResult): void {
  appendFileSync(file, `${JSON.stringify(result)}\n`)
}

/** Reads a summary file; when a layer ran twice, its last run counts. */
export function readResults(file: string): LayerResult[] {
  if (!existsSync(file)) return []
  const byLayer = new Map<string, LayerResult>()
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue
    const result = JSON.parse(line) as LayerResult // written by appendResult
    byLayer.set(result.layer, result)
  }
  return [...byLayer.values()]
}

/** A layer that could not run at all: one skip, with the reason. */
export function skippedLayer(layer: string, reason: string): LayerResult {
  return { layer, passed: 0, failed: 0, skipped: 1, seconds: 0, skips: [{ name: `layer ${layer}`, reason }] }
}

/** The report that ends a run: a line per layer, each skip with its reason, then the totals alone on the last line. */
export function report(results: readonly LayerResult[]): string {
  const sum = (pick: (result: LayerResult) => number) => results.reduce((total, result) => total + pick(result), 0)
  const layers = results.map(({ layer, passed, failed, skipped, seconds }) => {
    const counts = `${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed ${String(skipped).padStart(4)} skipped`
    return `${layer.padEnd(12)} ${counts} ${seconds.toFixed(1).padStart(8)} s`
  })
  const skips = results.flatMap(({ layer, skips: list }) => list.map(({ name, reason }) => `SKIPPED: ${layer}: ${name}: ${reason}`))
  const totals = `${sum((r) => r.passed)} passed, ${sum((r) => r.failed)} failed, ${sum((r) => r.skipped)} skipped`
  return [...layers, ...skips, totals].join('\n')
}
