/**
 * Watches the conditions of limits besides the manifests: gateways that know neither limits nor accounts, and models without a price or a bound. One
 * change may affect thousands of keys. The watch collects changes for a second. Then it enqueues the affected keys at background level, some
 * per turn. The operator writes only statuses that differ.
 */
import type { Cancel } from '#platform/clock.ts'
import { ACCOUNTS_FEATURE, LIMITS_FEATURE, PROOFS_FEATURE } from '#contract/records/format.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { type Informer, namespaceOf, refOf } from '#kube/port.ts'
import { inTurns } from '../../loop/in-parallel.ts'
import type { Acknowledgements } from '../../projection/acknowledgements.ts'
import type { LiveProcess } from '../../projection/store.ts'
import type { OperatorContext } from '../kind.ts'
import type { ProjectedModel, ProjectedModels } from '../served-model/projected-models.ts'
import { isLimited } from '#policy/effective.ts'
import { isHashKey } from './hash-source.ts'
import { policyOf } from './keyring-entry.ts'
import type { GatewaySupport } from './observed.ts'

/** Changes within this time are one change, ms. */
const COLLECT_MS = 1_000
/** Delay after the last gateway without limits has stopped, ms: otherwise a pod that restarts often would cause thousands of writes. */
const CURRENT_AFTER_MS = 60_000
/** Maximum number of keys per turn of the event loop. */
const TURN = 500

interface Support {
  state: GatewaySupport
  /** Monotonic ms at which a gateway lacked the feature last. */
  tooOldAtMs: number
}

type Namespaces = ProjectedModel['allowedNamespaces']

interface LimitWatchDeps extends Pick<OperatorContext, 'clock' | 'enqueue'> {
  readonly apiKeys: Pick<Informer<ApiKey>, 'list'>
  readonly acknowledgements: Pick<Acknowledgements, 'live'>
  readonly models: Pick<ProjectedModels, 'onChanged'>
}

export class LimitWatch {
  readonly #deps: LimitWatchDeps
  readonly #features = new Map<string, Support>(
    [LIMITS_FEATURE, ACCOUNTS_FEATURE, PROOFS_FEATURE].map((feature) => [feature, { state: 'Unknown', tooOldAtMs: -Infinity }]),
  )
  #dirty: Set<string> | '*' = new Set()
  #cancel: Cancel | undefined

  constructor(deps: LimitWatchDeps) {
    this.#deps = deps
    deps.models.onChanged((namespaces) => this.#changed(namespaces))
  }

  /** Whether every serving gateway has the feature. */
  supports(feature: string): GatewaySupport {
    return this.#features.get(feature)?.state ?? 'Unknown'
  }

  polled(): void {
    const serving = this.#deps.acknowledgements.live.filter(({ acknowledgement }) => acknowledgement?.ready !== false)
    if (serving.length === 0) return // no gateway serves, or Redis does not answer: the last known state stays
    const nowMs = this.#deps.clock.monotonic()
    const states = Array.from(this.#features, ([feature, support]) => {
      const former = support.state
      if (serving.some((process) => lacks(process, feature))) support.tooOldAtMs = nowMs
      support.state = nowMs - support.tooOldAtMs < CURRENT_AFTER_MS ? 'TooOld' : 'Current'
      return former !== support.state
    })
    if (states.some(Boolean)) this.#changed('*')
  }

  /** @param namespaces namespaces in which the callable models, their prices or their bounds may have changed */
  #changed(namespaces: Namespaces): void {
    if (namespaces === '*' || this.#dirty === '*') this.#dirty = '*'
    else for (const namespace of namespaces) this.#dirty.add(namespace)
    if (this.#dirty === '*' || this.#dirty.size > 0) this.#cancel ??= this.#deps.clock.after(COLLECT_MS, () => this.#check())
  }

  stop(): void {
    this.#cancel?.()
  }

  #check(): void {
    const dirty = this.#dirty === '*' ? undefined : this.#dirty
    this.#dirty = new Set()
    this.#cancel = undefined
    void inTurns([...this.#deps.apiKeys.list()], TURN, (apiKey) => {
      // First: deriving the policies of all keys would make one tenant's changes of models slow for everybody.
      if (dirty?.has(namespaceOf(apiKey)) === false) return
      const isAffected = apiKey.spec.accountRef !== undefined || isHashKey(apiKey) || isLimited(policyOf(apiKey))
      if (isAffected) this.#deps.enqueue(apiKeys.kind, refOf(apiKey), 'background')
    })
  }
}

/** Whether a gateway may lack a feature. An unreadable heartbeat proves nothing; a gateway ahead of the store is not older than this program. */
function lacks({ acknowledgement, isAhead }: LiveProcess, feature: string): boolean {
  return isAhead !== true && acknowledgement?.features.includes(feature) !== true
}
