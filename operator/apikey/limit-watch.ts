/**
 * What the limits of all keys depend on besides their manifests: gateways that cannot hold limits, and models without a price or a bound. One
 * change may concern thousands of keys. It is collected for a second; then the keys that it may concern are enqueued, some per turn, at
 * background level, and the status of a key is written only when it says something else.
 */
import { breathe } from '../../gateway/process/breathe.ts'
import type { Cancel, Clock } from '../../gateway/process/clock.ts'
import { LIMITS_FEATURE } from '../../gateway/shared/format.ts'
import type { ApiKey } from '../api/apikey.ts'
import { type Informer, namespaceOf, type ObjectRef, refOf } from '../kube/port.ts'
import type { LiveProcess } from '../projection/store.ts'
import type { ProjectedModel } from '../projected-models.ts'
import type { GatewayLimits } from './observed.ts'

/** Changes within this time are one change, ms. */
const COLLECT_MS = 1_000
/** The last gateway that cannot hold limits must be gone for this long, ms: one that comes and goes would have thousands of statuses written. */
const CURRENT_AFTER_MS = 60_000
/** Keys handled in one turn of the event loop. */
const TURN = 500

type Namespaces = ProjectedModel['allowedNamespaces']

/** What the watch needs. */
export interface LimitWatchDeps {
  readonly apiKeys: Pick<Informer<ApiKey>, 'list'>
  /** Heartbeats of the last poll; empty when none has been answered. */
  readonly live: () => readonly LiveProcess[]
  readonly clock: Clock
  readonly enqueue: (ref: ObjectRef) => void
}

/** One per operator. */
export class LimitWatch {
  readonly #deps: LimitWatchDeps
  #gateways: GatewayLimits = 'Unknown'
  #tooOldAtMs = Number.NEGATIVE_INFINITY
  #dirty: Namespaces = []
  #cancel: Cancel | undefined

  constructor(deps: LimitWatchDeps) {
    this.#deps = deps
  }

  /** Whether every gateway that serves holds limits. */
  get gateways(): GatewayLimits {
    return this.#gateways
  }

  /** The gateways have been asked what they have applied. */
  polled(): void {
    const serving = this.#deps.live().filter(({ acknowledgement }) => acknowledgement?.ready !== false)
    if (serving.length === 0) return // nobody serves, or nobody answers: what was known last stays
    const nowMs = this.#deps.clock.monotonic()
    if (serving.some(lacksLimits)) this.#tooOldAtMs = nowMs
    const next = nowMs - this.#tooOldAtMs < CURRENT_AFTER_MS ? 'TooOld' : 'Current'
    if (next === this.#gateways) return
    this.#gateways = next
    this.changed('*')
  }

  /** @param namespaces those whose keys may be able to call other models, or models that lack something else */
  changed(namespaces: Namespaces): void {
    this.#dirty = this.#dirty === '*' || namespaces === '*' ? '*' : [...new Set([...this.#dirty, ...namespaces])]
    if (this.#dirty.length > 0) this.#cancel ??= this.#deps.clock.after(COLLECT_MS, () => void this.#check())
  }

  stop(): void {
    this.#cancel?.()
  }

  async #check(): Promise<void> {
    const dirty = this.#dirty === '*' ? undefined : new Set(this.#dirty)
    this.#dirty = []
    this.#cancel = undefined
    let count = 0
    for (const apiKey of [...this.#deps.apiKeys.list()]) {
      count += 1
      if (count % TURN === 0) await breathe()
      if (isLimited(apiKey) && dirty?.has(namespaceOf(apiKey)) !== false) this.#deps.enqueue(refOf(apiKey))
    }
  }
}

/** A heartbeat that cannot be read promises nothing; one that is ahead of the store is not older than this program. */
function lacksLimits({ acknowledgement, isAhead }: LiveProcess): boolean {
  return isAhead !== true && acknowledgement?.features.includes(LIMITS_FEATURE) !== true
}

function isLimited({ spec }: ApiKey): boolean {
  return spec.limits !== undefined || (spec.budgets ?? []).length > 0
}
