/** Counts in plain numbers, and makes series at each scrape: prom-client would hash the labels of each request twice (5 of 75 µs). */
import type { Exchange } from './http/exchange.ts'

/** Upper bounds of the histogram, seconds. An answer of a model may take minutes. */
const BOUNDS: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** Status classes by first digit. `none`: the client left before the answer. */
const STATUS_CLASSES: readonly string[] = ['none', '1xx', '2xx', '3xx', '4xx', '5xx']

const DURATION = 'headgate_request_duration_seconds'

class Tally {
  readonly counts = new Map<string, Float64Array>()
  /** Requests per bound: each counts at the first bound that is not below its duration. The last entry counts those above all bounds. */
  readonly buckets = new Float64Array(BOUNDS.length + 1)
  seconds = 0
}

/** All series of one process. Their number is bounded, because no label holds text from a client. */
export class RequestStats {
  readonly #tallies = new Map<string, Map<string, Tally>>()

  finished({ route, model = '', backend = '', response, startedMs }: Exchange): void {
    const tally = this.#tally(route, model)
    const seconds = (performance.now() - startedMs) / 1000
    tally.seconds += seconds
    increment(tally.buckets, bucketOf(seconds))
    let counts = tally.counts.get(backend)
    if (counts === undefined) tally.counts.set(backend, (counts = new Float64Array(STATUS_CLASSES.length)))
    increment(counts, response.headersSent ? Math.floor(response.statusCode / 100) : 0)
  }

  *requests(): Iterable<[value: number, labels: Record<'route' | 'model' | 'status' | 'backend', string>]> {
    for (const { route, model, tally } of this.#each()) {
      const byBackend = [...tally.counts].flatMap(([backend, counts]) =>
        STATUS_CLASSES.map((status, at) => [backend, status, counts[at]] as const),
      )
      for (const [backend, status, value] of byBackend) if (value) yield [value, { route, model, status, backend }]
    }
  }

  durations(): string {
    const lines = [`# HELP ${DURATION} From the headers of a request to the last byte of its answer`, `# TYPE ${DURATION} histogram`]
    for (const { route, model, tally } of this.#each()) {
      const labels = `route="${route}",model="${escaped(model)}"`
      let sum = 0
      for (const [index, count] of tally.buckets.entries()) {
        sum += count
        lines.push(`${DURATION}_bucket{le="${BOUNDS[index] ?? '+Inf'}",${labels}} ${sum}`)
      }
      lines.push(`${DURATION}_sum{${labels}} ${tally.seconds}`, `${DURATION}_count{${labels}} ${sum}`)
    }
    return `${lines.join('\n')}\n`
  }

  #tally(route: string, model: string): Tally {
    let models = this.#tallies.get(route)
    if (models === undefined) this.#tallies.set(route, (models = new Map()))
    let tally = models.get(model)
    if (tally === undefined) models.set(model, (tally = new Tally()))
    return tally
  }

  *#each(): Iterable<{ route: string; model: string; tally: Tally }> {
    for (const [route, models] of this.#tallies) for (const [model, tally] of models) yield { route, model, tally }
  }
}

function increment(counts: Float64Array, index: number): void {
  counts[index] = (counts[index] ?? 0) + 1
}

function bucketOf(seconds: number): number {
  const index = BOUNDS.findIndex((bound) => seconds <= bound)
  return index < 0 ? BOUNDS.length : index
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
