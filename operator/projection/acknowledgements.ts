/**
 * Which gateway pods have applied which revision. Expected are the pods that serve (EndpointSlices of the gateway Service) and the live
 * heartbeats: a pod cut off from the store still serves, so heartbeats alone would prove nothing.
 */
import type { Cancel, Clock } from '../../gateway/shared/clock.ts'
import type { EndpointSlice } from '../kube/resources.ts'
import type { LiveProcess, ProjectionStore } from './store.ts'

/** Polling while somebody waits: from quick to slow, ms. */
const FIRST_POLL_MS = 4
const SLOWEST_POLL_MS = 100
const POLL_GROWTH = 1.5
/** Polling while nobody waits, ms. */
const IDLE_POLL_MS = 1_000

/** How far one revision of one record has come. */
export interface Confirmation {
  readonly ready: number
  readonly total: number
  /** Pods that have not acknowledged it. */
  readonly missing: readonly string[]
  /** false when the store did not answer: nothing is known. */
  readonly known: boolean
}

/** What acknowledgements are read from. */
export interface AcknowledgementsDeps {
  readonly store: ProjectionStore
  readonly clock: Clock
  /** Identity of the data set that revisions belong to. */
  readonly epoch: () => string
  /** EndpointSlices of the gateway Service. */
  readonly gatewaySlices: () => Iterable<EndpointSlice>
  /** Called after each poll, for those who wait without blocking. */
  readonly onPoll: () => void
}

/** @returns whether every pod that serves has applied it; no pod at all proves nothing */
export function isConfirmed(confirmation: Confirmation): boolean {
  return confirmation.known && confirmation.total > 0 && confirmation.missing.length === 0
}

/** Watches the heartbeats of the gateways. */
export class Acknowledgements {
  readonly #deps: AcknowledgementsDeps
  #live: readonly LiveProcess[] = []
  #known = false
  /** Calls of `wait` under way, and what wakes them. */
  #waiting = 0
  #waiters = new Set<() => void>()
  #cancel: Cancel = () => undefined
  #pollMs = IDLE_POLL_MS
  #stopped = false

  constructor(deps: AcknowledgementsDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#schedule(0)
  }

  stop(): void {
    this.#stopped = true
    this.#cancel()
    for (const wake of this.#waiters) wake()
  }

  /** What the gateways said last. */
  get live(): readonly LiveProcess[] {
    return this.#live
  }

  /** How far a record has come, as of the last poll. */
  of(rev: number, uid: string): Confirmation {
    const epoch = this.#deps.epoch()
    const processes = Map.groupBy(this.#live, (process) => process.pod)
    const serving = servingPods(this.#deps.gatewaySlices())
    // a process that is still starting loads everything before it serves: nobody has to wait for it
    const alive = this.#live.filter(({ acknowledgement }) => acknowledgement?.ready !== false).map(({ pod }) => pod)
    const pods = new Set([...serving, ...alive])
    const missing = [...pods].filter((pod) => !hasApplied(processes.get(pod) ?? [], epoch, rev, uid))
    return { ready: pods.size - missing.length, total: pods.size, missing: missing.sort(), known: this.#known }
  }

  /** Waits until a record is applied everywhere, at most `timeoutMs`, or until `stop` aborts. */
  async wait(rev: number, uid: string, timeoutMs: number, stop?: AbortSignal): Promise<Confirmation> {
    const deadline = this.#deps.clock.monotonic() + timeoutMs
    let confirmation = this.of(rev, uid)
    if (isConfirmed(confirmation) || timeoutMs <= 0) return confirmation
    this.#waiting += 1
    if (this.#pollMs > FIRST_POLL_MS) this.#schedule(FIRST_POLL_MS)
    do {
      await this.#nextPoll(deadline - this.#deps.clock.monotonic(), stop)
      confirmation = this.of(rev, uid)
    } while (!isOver(confirmation) && !this.#mayStop(stop) && this.#deps.clock.monotonic() < deadline)
    this.#waiting -= 1
    return confirmation
  }

  #mayStop(stop: AbortSignal | undefined): boolean {
    return this.#stopped || stop?.aborted === true
  }

  #nextPoll(timeoutMs: number, stop: AbortSignal | undefined): Promise<void> {
    if (this.#mayStop(stop)) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#deps.clock.after(timeoutMs, done)
    const waiters = this.#waiters
    function done(): void {
      cancel()
      stop?.removeEventListener('abort', done)
      waiters.delete(done)
      resolve()
    }
    waiters.add(done)
    stop?.addEventListener('abort', done, { once: true })
    return promise
  }

  #schedule(ms: number): void {
    if (this.#stopped) return
    this.#cancel()
    this.#pollMs = ms
    this.#cancel = this.#deps.clock.after(ms, () => void this.#poll())
  }

  async #poll(): Promise<void> {
    try {
      this.#live = await this.#deps.store.liveProcesses()
      this.#known = true
    } catch {
      this.#known = false // the store is away: the projection reports it; nothing is known here
    }
    for (const wake of [...this.#waiters]) wake()
    this.#deps.onPoll()
    setImmediate(() => this.#schedule(this.#waiting > 0 ? this.#slower() : IDLE_POLL_MS)) // who is content has left by then
  }

  #slower(): number {
    return Math.min(Math.max(this.#pollMs, FIRST_POLL_MS) * POLL_GROWTH, SLOWEST_POLL_MS)
  }
}

/** Nothing more is to come: everybody has it, or nobody serves, so that there is nobody to wait for. */
function isOver(confirmation: Confirmation): boolean {
  return isConfirmed(confirmation) || (confirmation.known && confirmation.total === 0)
}

function servingPods(slices: Iterable<EndpointSlice>): Set<string> {
  const pods = new Set<string>()
  for (const slice of slices) {
    for (const endpoint of slice.endpoints ?? []) {
      if (endpoint.conditions?.ready === false && endpoint.conditions.serving !== true) continue
      const name = endpoint.targetRef?.name ?? endpoint.addresses[0]
      if (name !== undefined) pods.add(name)
    }
  }
  return pods
}

/** A pod has applied a revision when all its live processes have. */
function hasApplied(processes: readonly LiveProcess[], epoch: string, rev: number, uid: string): boolean {
  return (
    processes.length > 0 && processes.every(({ acknowledgement: ack }) => ack?.epoch === epoch && ack.rev >= rev && !ack.bad.includes(uid))
  )
}
