/**
 * Watches the conditions of limits besides the manifests: gateways that cannot enforce limits, and models without a price or a bound. One
 * change may affect thousands of keys. The watch collects changes for a second. Then it enqueues the affected keys at background level, some
 * per turn. The operator writes only statuses that differ.
 */
import type { Cancel } from '#platform/clock.ts'
import { LIMITS_FEATURE } from '#contract/records/format.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { type Informer, namespaceOf, refOf } from '#kube/port.ts'
import { inTurns } from '../../loop/in-parallel.ts'
import type { Acknowledgements } from '../../projection/acknowledgements.ts'
import type { LiveProcess } from '../../projection/store.ts'
import type { OperatorContext } from '../kind.ts'
import { type ProjectedModel, type ProjectedModels, union } from '../served-model/projected-models.ts'
import { isLimited } from '#policy/effective.ts'
import { policyOf } from './keyring-entry.ts'
import type { GatewayLimits } from './observed.ts'

/** Changes within this time are one change, ms. */
const COLLECT_MS = 1_000
/** Delay after the last gateway without limits has stopped, ms: otherwise a pod that restarts often would cause thousands of writes. */
const CURRENT_AFTER_MS = 60_000
/** Most keys per turn of the event loop. */
const TURN = 500

type Namespaces = ProjectedModel['allowedNamespaces']

interface LimitWatchDeps extends Pick<OperatorContext, 'clock' | 'enqueue'> {
  readonly apiKeys: Pick<Informer<ApiKey>, 'list'>
  readonly acknowledgements: Pick<Acknowledgements, 'live'>
  readonly models: Pick<ProjectedModels, 'onChanged'>
}

export class LimitWatch {
  readonly #deps: LimitWatchDeps
  #gateways: GatewayLimits = 'Unknown'
  #tooOldAtMs = Number.NEGATIVE_INFINITY
  #dirty: Namespaces = []
  #cancel: Cancel | undefined

  constructor(deps: LimitWatchDeps) {
    this.#deps = deps
    deps.models.onChanged((namespaces) => this.#changed(namespaces))
  }

  get gateways(): GatewayLimits {
    return this.#gateways
  }

  polled(): void {
    const serving = this.#deps.acknowledgements.live.filter(({ acknowledgement }) => acknowledgement?.ready !== false)
    if (serving.length === 0) return // no gateway serves, or Redis does not answer: the last known state stays
    const nowMs = this.#deps.clock.monotonic()
    if (serving.some(lacksLimits)) this.#tooOldAtMs = nowMs
    const next = nowMs - this.#tooOldAtMs < CURRENT_AFTER_MS ? 'TooOld' : 'Current'
    if (next === this.#gateways) return
    this.#gateways = next
    this.#changed('*')
  }

  /** @param namespaces namespaces in which the callable models, their prices or their bounds may have changed */
  #changed(namespaces: Namespaces): void {
    this.#dirty = union(this.#dirty, namespaces)
    if (this.#dirty.length > 0) this.#cancel ??= this.#deps.clock.after(COLLECT_MS, () => this.#check())
  }

  stop(): void {
    this.#cancel?.()
  }

  #check(): void {
    const dirty = this.#dirty === '*' ? undefined : new Set(this.#dirty)
    this.#dirty = []
    this.#cancel = undefined
    void inTurns([...this.#deps.apiKeys.list()], TURN, (apiKey) => {
      if (isLimited(policyOf(apiKey)) && dirty?.has(namespaceOf(apiKey)) !== false)
        this.#deps.enqueue(apiKeys.kind, refOf(apiKey), 'background')
    })
  }
}

/** Whether a gateway may lack limits. An unreadable heartbeat proves nothing; a gateway ahead of the store is not older than this program. */
function lacksLimits({ acknowledgement, isAhead }: LiveProcess): boolean {
  return isAhead !== true && acknowledgement?.features.includes(LIMITS_FEATURE) !== true
}
