import type { Cancel, Clock } from '#platform/clock.ts'
import type { EndpointSlice } from '#kube/resources.ts'
import { BackOff } from '#platform/back-off.ts'
import { inTurns } from '../loop/in-parallel.ts'
import { ServingPods } from './serving-pods.ts'
import type { LiveProcess, ProjectionStore } from './store.ts'

/** Intervals of polls while an acknowledgement is expected, from fast to slow, ms. */
const FIRST_POLL_MS = 4
const SLOWEST_POLL_MS = 100
const POLL_GROWTH = 1.5
/** Interval of polls otherwise, ms. */
const IDLE_POLL_MS = 1_000
/** After a poll the next one waits at least this many times as long as the poll took, so polls take at most a third of the time. */
const REST_PER_POLL = 2
/** `onProgress` reports counts that differ from those in a status at most this often, ms. */
const PROGRESS_MS = 1_000
/** A pod that has not acknowledged a revision for this long holds up every key that waits for it, ms. */
const LAGGING_AFTER_MS = 5_000
/** After this many keys other work of the event loop runs. */
const CHUNK = 500

export interface Confirmation {
  /** Unknown: the store did not answer. NoGateways: no pod serves, so there is no pod to wait for. */
  readonly state: 'Acknowledged' | 'NoGateways' | 'Waiting' | 'Unknown'
  readonly ready: number
  readonly total: number
  /** Pods that have not acknowledged the revision. */
  readonly missing: readonly string[]
}

/** Sources of acknowledgements, and callbacks, which must only enqueue. */
export interface AcknowledgementsDeps {
  readonly store: Pick<ProjectionStore, 'liveProcesses'>
  readonly clock: Clock
  /** Identity of the data set that revisions belong to. */
  readonly epoch: () => string
  /** EndpointSlices of the gateway Service. */
  readonly gatewaySlices: () => Iterable<EndpointSlice>
  /** Called when every pod has acknowledged the expected revision of a key, or when no pod serves. This call ends the expectation. */
  readonly onConfirmed: (key: string) => void
  /** Called when the counts of a key differ from the counts in its status, at most once a second. */
  readonly onProgress: (key: string) => void
  /** Called when other pods than before hold up keys, at most once a second. @param pods none: every pod acknowledges */
  readonly onLagging: (pods: readonly string[]) => void
  /** Called when a gateway pod appears or disappears. */
  readonly onServingChanged: () => void
  /** Called after each poll, even if the store did not answer. */
  readonly onPoll: () => void
}

interface Expectation {
  readonly revision: number
  readonly uid: string
  readonly said: Pick<Confirmation, 'ready' | 'total'> | undefined
  /** Monotonic ms from which this revision is expected. */
  readonly sinceMs: number
}

/** Follows the acknowledgements of the gateways. No caller waits: a callback enqueues an expected key once every pod has its revision. */
export class Acknowledgements {
  readonly #deps: AcknowledgementsDeps
  readonly #delay = new BackOff({ firstMs: FIRST_POLL_MS, maxMs: SLOWEST_POLL_MS, factor: POLL_GROWTH })
  readonly #expected = new Map<string, Expectation>()
  #live: readonly LiveProcess[] = []
  #pods = new ServingPods([], [], '')
  #isKnown = false
  #progressAtMs = Number.NEGATIVE_INFINITY
  #lagging: readonly string[] = []
  /** The next poll; undefined while one is under way. */
  #next: { readonly dueMs: number; readonly cancel: Cancel } | undefined
  #isStopped = false

  constructor(deps: AcknowledgementsDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#schedule(0)
  }

  stop(): void {
    this.#isStopped = true
    this.#next?.cancel()
  }

  get live(): readonly LiveProcess[] {
    return this.#live
  }

  /** Highest revision that every serving pod has proven to have applied; 0 when no such revision is known. */
  get watermark(): number {
    return this.#isKnown ? Math.max(0, this.#pods.watermark) : 0
  }

  get waiting(): number {
    return this.#expected.size
  }

  /** Which pods had applied this revision of a record at the last poll. */
  confirmation(revision: number, uid: string): Confirmation {
    const missing = this.#pods.missing(revision, uid)
    const { total } = this.#pods
    const state = missing.length > 0 ? 'Waiting' : total > 0 ? 'Acknowledged' : 'NoGateways'
    return { state: this.#isKnown ? state : 'Unknown', ready: total - missing.length, total, missing }
  }

  /**
   * Expects a revision: a poll calls `onConfirmed(key)` once, when every pod has applied the revision or no pod serves. `expect` itself never
   * calls it.
   * @param said the counts in the status of the key; if given, `onProgress(key)` reports counts that differ
   */
  expect(key: string, revision: number, uid: string, said?: Expectation['said']): void {
    const nowMs = this.#deps.clock.monotonic()
    const former = this.#expected.get(key)
    this.#expected.set(key, { revision, uid, said, sinceMs: former?.revision === revision ? former.sinceMs : nowMs })
    this.#delay.reset()
    const soonMs = nowMs + FIRST_POLL_MS
    if (this.#next && this.#next.dueMs > soonMs) this.#schedule(FIRST_POLL_MS)
  }

  /** Ends the wait for a key. */
  forget(key: string): void {
    this.#expected.delete(key)
  }

  #schedule(ms: number): void {
    this.#next?.cancel()
    this.#next = undefined
    if (this.#isStopped) return
    const cancel = this.#deps.clock.after(ms, () => void this.#poll())
    this.#next = { dueMs: this.#deps.clock.monotonic() + ms, cancel }
  }

  async #poll(): Promise<void> {
    this.#next = undefined
    const startedAtMs = this.#deps.clock.monotonic()
    this.#isKnown = await this.#read()
    if (this.#isStopped) return
    const tookMs = this.#deps.clock.monotonic() - startedAtMs
    if (this.#isKnown) {
      await this.#confirm()
      await this.#offerProgress()
    }
    this.#deps.onPoll()
    this.#schedule(this.#expected.size > 0 ? Math.max(this.#delay.next(), tookMs * REST_PER_POLL) : IDLE_POLL_MS)
  }

  /** @returns whether the store answered */
  async #read(): Promise<boolean> {
    const { store, gatewaySlices, epoch, onServingChanged } = this.#deps
    try {
      this.#live = await store.liveProcesses()
    } catch {
      return false // the projection reports that the store does not answer
    }
    const former = this.#pods
    this.#pods = new ServingPods(this.#live, gatewaySlices(), epoch())
    if (!this.#pods.hasSamePods(former) && !this.#isStopped) onServingChanged()
    return true
  }

  async #confirm(): Promise<void> {
    const noPods = this.#pods.total === 0
    const applied: Array<[string, Expectation]> = []
    for (const entry of this.#expected) if (noPods || this.#pods.hasApplied(entry[1].revision, entry[1].uid)) applied.push(entry)
    applied.sort(([, a], [, b]) => a.revision - b.revision)
    await inTurns(applied, CHUNK, ([key, expectation]) => {
      if (this.#expected.get(key) !== expectation) return // forgotten, or expected again, while other work ran
      this.forget(key)
      this.#deps.onConfirmed(key)
    })
  }

  async #offerProgress(): Promise<void> {
    const nowMs = this.#deps.clock.monotonic()
    if (nowMs - this.#progressAtMs < PROGRESS_MS) return
    this.#progressAtMs = nowMs
    let overdue = -1 // the newest revision that every pod should have by now; -1: none
    await inTurns([...this.#expected], CHUNK, ([key, expectation]) => {
      const { revision, uid, said, sinceMs } = expectation
      if (nowMs - sinceMs >= LAGGING_AFTER_MS) overdue = Math.max(overdue, revision)
      if (!said || this.#expected.get(key) !== expectation) return
      const { ready, total } = this.confirmation(revision, uid)
      if (said.ready === ready && said.total === total) return
      this.#expected.set(key, { ...expectation, said: { ready, total } })
      this.#deps.onProgress(key)
    })
    this.#reportLagging(this.#pods.missing(overdue))
  }

  #reportLagging(pods: readonly string[]): void {
    if (this.#isStopped || pods.join() === this.#lagging.join()) return
    this.#lagging = pods
    this.#deps.onLagging(pods)
  }
}

/** The health of backends according to the gateways' last heartbeats. */
export class BackendHealth {
  #health = new Map<string, string>()

  /** @returns uids of the models for which a gateway reports another health of a backend than at the last call */
  changed(live: readonly LiveProcess[]): ReadonlySet<string> {
    const next = new Map<string, string>()
    const backends = live.flatMap(({ acknowledgement }) => Object.entries(acknowledgement?.backends ?? {}))
    for (const [id, seen] of Map.groupBy(backends, ([backendId]) => backendId)) {
      const reports = seen.map(([, { up, total }]) => `${up}/${total}`)
      next.set(id, reports.sort().join()) // heartbeats come in any order
    }
    const ids = [...new Set([...next.keys(), ...this.#health.keys()])]
    const changed = ids.filter((id) => next.get(id) !== this.#health.get(id))
    this.#health = next
    return new Set(changed.map((id) => id.slice(0, id.lastIndexOf('/')))) // a heartbeat names a backend `<model uid>/<backend name>`
  }
}
