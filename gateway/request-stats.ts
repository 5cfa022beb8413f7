/** Counts of finished requests by route, model, status and backend, with the histogram of their durations. */
import type { Exchange } from './http/exchange.ts'

/** Upper bounds of the histogram, seconds. An answer of a model may take minutes. */
const BOUNDS: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** Status classes by first digit. `none`: the client left before the answer. `broken`: an answer that began well broke off. */
const STATUS_CLASSES: readonly string[] = ['none', '1xx', '2xx', '3xx', '4xx', '5xx', 'broken']
const BROKEN = STATUS_CLASSES.indexOf('broken')

const DURATION = 'headgate_request_duration_seconds'

class Tally {
  readonly counts = new Map<string, Float64Array>()
  /** Requests per bound: each counts at the first bound that is not below its duration. The last entry counts those above all bounds. */
  readonly buckets = new Float64Array(BOUNDS.length + 1)
  seconds = 0

  countsOf(backend: string): Float64Array {
    const known = this.counts.get(backend)
    if (known) return known
    if (this.counts.size > MAX_BACKENDS && backend !== OTHER) return this.countsOf(OTHER)
    const made = new Float64Array(STATUS_CLASSES.length)
    this.counts.set(backend, made)
    return made
  }

  keep(backends: ReadonlySet<string>): void {
    for (const backend of this.counts.keys()) if (!backends.has(backend)) this.counts.delete(backend)
  }
}

/** Maximum number of served names of one namespace, and most backends of one model, that have series of their own. */
const MAX_NAMES = 200
const MAX_BACKENDS = 32
/** Counts what has no series of its own. */
const OTHER = 'other'

/** A model whose calls are counted under its name. */
export interface CountedModel {
  readonly record: { readonly namespace: string; readonly servedName: string }
  readonly backends: readonly { readonly name: string }[]
}

/** By served name. */
type Tallies = Map<string, Tally>

interface Series {
  readonly route: string
  readonly namespace: string
  readonly model: string
  readonly tally: Tally
}

/**
 * All series of one process. No label holds text from a client. Every author of ServedModels chooses names of models and backends, so a
 * name has series only while a model has it, and a namespace has a bounded number of them.
 */
export class RequestStats {
  readonly #models: () => Iterable<CountedModel>
  /** By route, namespace of the model, and served name. */
  readonly #tallies = new Map<string, Map<string, Tallies>>()

  /** @param models that there are now */
  constructor(models: () => Iterable<CountedModel>) {
    this.#models = models
  }

  finished(exchange: Exchange): void {
    const { response, startedMs } = exchange
    const tally = this.#tally(exchange)
    const seconds = (performance.now() - startedMs) / 1000
    tally.seconds += seconds
    increment(tally.buckets, bucketOf(seconds))
    const counts = tally.countsOf(exchange.backend ?? '')
    const status = response.headersSent ? Math.floor(response.statusCode / 100) : 0
    increment(counts, exchange.isBroken ? BROKEN : status)
  }

  /** Drops the series of names that no model or backend has now. */
  dropUnknown(): void {
    const known = knownNames(this.#models())
    for (const namespaces of this.#tallies.values()) {
      for (const [namespace, models] of namespaces) {
        if (namespace !== '') dropFrom(models, known.get(namespace))
        if (models.size === 0) namespaces.delete(namespace)
      }
    }
  }

  *requests(): Iterable<[value: number, labels: Record<'route' | 'model_namespace' | 'model' | 'status' | 'backend', string>]> {
    for (const { route, namespace, model, tally } of this.#each()) {
      const byBackend = [...tally.counts].flatMap(([backend, counts]) =>
        STATUS_CLASSES.map((status, at) => [backend, status, counts[at]] as const),
      )
      for (const [backend, status, value] of byBackend)
        if (value) yield [value, { route, model_namespace: namespace, model, status, backend }]
    }
  }

  durations(): string {
    const lines = [`# HELP ${DURATION} From the headers of a request to the last byte of its answer`, `# TYPE ${DURATION} histogram`]
    for (const { route, namespace, model, tally } of this.#each()) {
      const labels = `route="${route}",model_namespace="${namespace}",model="${escaped(model)}"`
      let sum = 0
      for (const [index, count] of tally.buckets.entries()) {
        sum += count
        lines.push(`${DURATION}_bucket{le="${BOUNDS[index] ?? '+Inf'}",${labels}} ${sum}`)
      }
      lines.push(`${DURATION}_sum{${labels}} ${tally.seconds}`, `${DURATION}_count{${labels}} ${sum}`)
    }
    return `${lines.join('\n')}\n`
  }

  #tally({ route, modelNamespace = '', model = '' }: Exchange): Tally {
    return this.#modelsOf(route, modelNamespace).get(model) ?? this.#newTally(route, modelNamespace, model)
  }

  #newTally(route: string, namespace: string, model: string): Tally {
    const before = this.#modelsOf(route, namespace)
    if (before.size >= MAX_NAMES && !before.has(OTHER)) this.dropUnknown() // later ones wait for a scrape
    const models = this.#modelsOf(route, namespace)
    return entryOf(models, models.size >= MAX_NAMES ? OTHER : model, () => new Tally())
  }

  #modelsOf(route: string, namespace: string): Tallies {
    const namespaces = entryOf(this.#tallies, route, () => new Map<string, Tallies>())
    return entryOf(namespaces, namespace, () => new Map<string, Tally>())
  }

  *#each(): Iterable<Series> {
    for (const [route, namespaces] of this.#tallies)
      for (const [namespace, models] of namespaces) for (const [model, tally] of models) yield { route, namespace, model, tally }
  }
}

function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

/** @param known names of backends by served name; undefined if the namespace has no model */
function dropFrom(models: Tallies, known: ReadonlyMap<string, ReadonlySet<string>> | undefined): void {
  for (const [model, tally] of models) {
    const backends = known?.get(model)
    if (backends) tally.keep(backends)
    else if (model !== OTHER || known === undefined) models.delete(model)
  }
}

/** Names of backends by namespace and served name. */
function knownNames(models: Iterable<CountedModel>): ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>> {
  const known = new Map<string, Map<string, Set<string>>>()
  for (const { record, backends } of models) {
    const names = entryOf(known, record.namespace, () => new Map<string, Set<string>>())
    const ofModel = entryOf(names, record.servedName, () => new Set(['', OTHER]))
    for (const { name } of backends) ofModel.add(name)
  }
  return known
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
