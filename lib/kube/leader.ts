import { isDeepStrictEqual } from 'node:util'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { sleep, type Clock } from '#platform/clock.ts'
import { KubeError, isKubeError, type KubePort } from './port.ts'
import { leases, microTime, type Lease } from './resources.ts'

/** Name of the Lease, in the operator's namespace. */
export const LEASE_NAME = 'headgate-operator'

/** The three times of the election, ms. */
export interface LeaseTimes {
  /** A standby takes over after seeing the Lease unchanged for this long. */
  readonly durationMs: number
  /** The leader gives up leadership when it could not renew the Lease for this long. */
  readonly renewMs: number
  /** Time between two tries. */
  readonly retryMs: number
}

export interface LeaderOptions {
  /** A client with connections of its own (`RawClient` with isDedicated): load must not depose the leader. */
  readonly kube: KubePort
  readonly clock: Clock
  readonly logger: Log
  /** [0, 1) */
  readonly random: () => number
  readonly namespace: string
  /** Unique per process: pod name and a random suffix, since a restarted container keeps its pod name. */
  readonly identity: string
  readonly times: LeaseTimes
  /** Called once when leadership is lost. The process must exit, since only its end stops writes that are under way. */
  readonly onLost: (reason: string) => void
}

/** Receives all annotations of the Lease. */
export type AnnotationListener = (annotations: Readonly<Record<string, string>>) => void
/** Annotations to set; null removes one. */
export type AnnotationPatch = Readonly<Record<string, string | null>>

/** Thrown by `assertLeading`: this process may not write any more. */
export class NotLeadingError extends Error {
  override readonly name = 'NotLeadingError'
}

/** Standbys spread their tries over this part of the retry time. */
const JITTER = 0.2

/** @throws RangeError naming the three settings unless duration > renew > retry × 1.2: otherwise one slow call would depose a leader */
export function checkLeaseTimes(times: LeaseTimes): void {
  if (times.durationMs > times.renewMs && times.renewMs > times.retryMs * (1 + JITTER) && times.retryMs > 0) return
  throw new RangeError('LEASE_DURATION_SECONDS > LEASE_RENEW_SECONDS > LEASE_RETRY_SECONDS × 1.2 must hold')
}

/** The version of a Lease that was there before. */
const DELETED = 'deleted'
const TAKEN = 'another operator holds the Lease, or it was deleted'

type State = 'Standby' | 'Leading' | 'Lost' | 'Released'

/**
 * Election of the one operator that writes. Another holder counts as dead when *this process* has seen its Lease unchanged for long enough.
 * The times in the Lease do not count, since the clocks of two machines differ.
 */
export class LeaderLease {
  readonly #options: LeaderOptions
  readonly #stopped = new AbortController()
  readonly #outage: OutageLog
  #state: State = 'Standby'
  /** The Lease as last read or written; undefined = read it before writing. */
  #lease: Lease | undefined
  #fence = 0
  /** Whether a write of this process ever took the Lease. */
  #holds = false
  /** resourceVersion of a Lease of another holder, or `DELETED`. */
  #seenVersion: string | undefined
  #seenAtMs = 0
  /** When the last successful renewal was *sent*: another process may have seen the Lease unchanged since then. */
  #renewedAtMs = 0
  #writing: Promise<unknown> = Promise.resolve()
  #acquiring: Promise<void> = Promise.resolve()
  #listener: AnnotationListener = () => undefined
  /** The annotations that the listener has received. */
  #announced: Lease['metadata']['annotations']

  /** @throws RangeError for times that cannot work */
  constructor(options: LeaderOptions) {
    checkLeaseTimes(options.times)
    this.#options = options
    this.#outage = new OutageLog('the Lease', options.logger, options.clock)
  }

  /** Whether this process is the leader and its deadline has not passed. */
  get leading(): boolean {
    return this.#state === 'Leading' && !this.#overdue()
  }

  /** leaseTransitions of the Lease: grows with every change of leader, and orders the writes of two leaders in Redis. @throws NotLeadingError */
  get fence(): number {
    this.assertLeading()
    return this.#fence
  }

  /**
   * Call this before every write to anything outside this process. It also detects a lost Lease after a pause of the whole process, before any timer runs.
   * @throws NotLeadingError
   */
  assertLeading(): void {
    if (this.leading) return
    if (this.#state === 'Leading') this.#lose('the Lease could not be renewed in time')
    throw new NotLeadingError('this operator is not the leader')
  }

  /** The annotations of the Lease as last read or written by this leader. */
  get annotations(): Readonly<Record<string, string>> {
    return this.#announced ?? {}
  }

  /** Waits until this process leads, then renews in the background. Returns without leading only after `release`. */
  acquire(): Promise<void> {
    this.#acquiring = this.#acquire()
    return this.#acquiring
  }

  async #acquire(): Promise<void> {
    const { clock, random, times, logger } = this.#options
    while (!this.#stopped.signal.aborted) {
      const taken = await this.#step('take the Lease', () => this.#tryTake())
      if (this.#stopped.signal.aborted) return // `release` hands back a Lease that was taken in the meantime
      if (taken) {
        this.#state = 'Leading'
        logger.info({ identity: this.#options.identity, fence: this.#fence }, 'leading')
        this.#announce()
        void this.#renewLoop()
        return
      }
      await sleep(clock, times.retryMs * (1 + random() * JITTER), this.#stopped.signal)
    }
  }

  /** Sets the listener for the annotations of the Lease: it is called now if this process leads, and whenever a renewal finds them changed. */
  onAnnotations(listener: AnnotationListener): void {
    this.#listener = listener
    this.#announced = undefined
    this.#announce()
  }

  /**
   * Sets annotations of the Lease; null removes one, and annotations not named stay.
   * @throws NotLeadingError; KubeError when the Lease cannot be written
   */
  async annotate(patch: AnnotationPatch): Promise<void> {
    await this.#exclusive(() => this.#change((current) => withAnnotations(current, patch)))
    this.assertLeading()
  }

  /**
   * Raises the fence above the one in Redis. After the Lease was deleted its count starts again, and Redis would refuse every write.
   * @param stored the fence that Redis holds
   * @returns the fence to write under from now on
   * @throws NotLeadingError; KubeError when the Lease cannot be written
   */
  async raiseFence(stored: number): Promise<number> {
    await this.#exclusive(async () => {
      this.assertLeading()
      if (this.#fence > stored) return
      await this.#change((current) => ({ ...current, spec: { ...current.spec, leaseTransitions: stored + 1 } }))
    })
    return this.fence
  }

  /** Hands the Lease back and becomes a standby: `acquire` tries again. Call it before any worker has begun, and wait for a retry time. */
  async stepDown(): Promise<void> {
    this.assertLeading()
    this.#state = 'Standby' // ends the renewals
    try {
      await this.#exclusive(() => this.#handBack())
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'the Lease was not handed back; this process takes it again')
    }
    this.#lease = undefined
    this.#holds = false
  }

  /** Hands the Lease back, so that a standby takes over at once. Call it when all workers have ended. */
  async release(): Promise<void> {
    const isLost = this.#state === 'Lost'
    if (!isLost) this.#state = 'Released'
    this.#stopped.abort()
    await this.#acquiring
    if (isLost || this.#overdue()) return
    try {
      await this.#exclusive(() => this.#handBack())
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'the Lease was not handed back; a standby takes over when it has run out')
    }
  }

  async #handBack(): Promise<void> {
    if (!this.#holds) return
    const current = this.#lease ?? (await this.#read())
    if (current?.spec?.holderIdentity !== this.#options.identity) return
    await this.#options.kube.update(leases, { ...current, spec: { ...current.spec, holderIdentity: '', leaseDurationSeconds: 1 } })
  }

  async #renewLoop(): Promise<void> {
    const { clock, times, logger } = this.#options
    let startedAtMs = clock.monotonic()
    while (this.#state === 'Leading') {
      const waitMs = Math.max(0, startedAtMs + times.retryMs - clock.monotonic()) // no wait after a try that hung, since time is short then
      const plannedMs = clock.monotonic() + waitMs
      await sleep(clock, waitMs, this.#stopped.signal)
      startedAtMs = clock.monotonic()
      const lagMs = Math.round(startedAtMs - plannedMs)
      if (lagMs > times.retryMs) logger.warn({ lagMs }, 'the event loop was blocked; renewing the Lease late')
      if (this.#state !== 'Leading') return
      if (!this.#overdue()) await this.#step('renew the Lease', () => this.#renew())
      if (this.#state === 'Leading' && this.#overdue()) this.#lose('the Lease could not be renewed in time')
    }
  }

  /** One try. @returns false when it failed, which is logged */
  async #step(what: string, run: () => Promise<boolean>): Promise<boolean> {
    try {
      const done = await this.#exclusive(run)
      this.#outage.works()
      return done
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown failure'
      const remedy = isKubeError(error, 'Unreachable') ? '; check that the API server runs and can be reached' : ''
      this.#outage.failed(`cannot ${what} ${this.#options.namespace}/${LEASE_NAME}: ${reason}${remedy}`)
      return false
    }
  }

  /**
   * Ends the wait for a call after half of the renewal time, so that another call has time after one that hangs.
   * A late result is harmless, since every write carries a resourceVersion.
   */
  async #bounded<R>(run: () => Promise<R>): Promise<R> {
    const { clock, times } = this.#options
    const { promise, reject } = Promise.withResolvers<never>()
    const cancel = clock.after(times.renewMs / 2, () => reject(new KubeError('Unreachable', 0, 'no answer in time')))
    try {
      return await Promise.race([run(), promise])
    } finally {
      cancel()
    }
  }

  async #renew(): Promise<boolean> {
    await this.#change((current) => current)
    return this.#state === 'Leading'
  }

  /** Renews the Lease with a change. A conflict means that another client annotated or took the Lease: read it and try once more. */
  async #change(edit: (current: Lease) => Lease): Promise<void> {
    try {
      await this.#write(edit)
    } catch (error) {
      if (!isKubeError(error, 'Conflict')) throw error
      await this.#write(edit)
    }
    this.#announce()
  }

  #announce(): void {
    if (this.#state !== 'Leading' || !this.#lease) return
    const { annotations = {} } = this.#lease.metadata
    if (isDeepStrictEqual(annotations, this.#announced)) return
    this.#announced = annotations
    this.#listener(annotations)
  }

  async #write(edit: (current: Lease) => Lease): Promise<void> {
    const sentAtMs = this.#options.clock.monotonic()
    const current = this.#lease ?? (await this.#read())
    if (current?.spec?.holderIdentity !== this.#options.identity) return this.#lose(TAKEN)
    const wanted = edit({ ...current, spec: this.#spec(current) })
    this.#lease = undefined // a write without an answer may have been applied: then the next write must read first
    const { metadata } = await this.#options.kube.update(leases, wanted)
    this.#remember({ ...wanted, metadata }, sentAtMs)
  }

  async #tryTake(): Promise<boolean> {
    const { kube, clock } = this.#options
    const current = await this.#read()
    const sentAtMs = clock.monotonic()
    if (!this.#isFree(current)) return false
    const wanted = this.#taken(current)
    try {
      const { metadata } = await (current ? kube.update(leases, wanted) : kube.create(leases, wanted))
      this.#remember({ ...wanted, metadata }, sentAtMs)
      return true
    } catch (error) {
      if (isKubeError(error, 'Conflict', 'AlreadyExists')) return false // another process was faster
      throw error
    }
  }

  #taken(current: Lease | undefined): Lease {
    const { clock, identity, namespace } = this.#options
    // this process is already the holder after a take whose answer was lost: the leader does not change, so the fence stays
    const isMine = current?.spec?.holderIdentity === identity
    const leaseTransitions = (current?.spec?.leaseTransitions ?? 0) + (isMine ? 0 : 1)
    const spec = { ...this.#spec(current), acquireTime: microTime(clock.now()), leaseTransitions }
    return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: LEASE_NAME, namespace }, ...current, spec }
  }

  /** A Lease that was deleted counts like one that is held: its holder may work until the next renewal, or is being uninstalled. */
  #isFree(lease: Lease | undefined): boolean {
    if (lease === undefined) return this.#seenVersion === undefined || this.#isUnchanged(DELETED)
    const holder = lease.spec?.holderIdentity ?? ''
    if (holder === '' || holder === this.#options.identity) return true
    return this.#isUnchanged(lease.metadata.resourceVersion ?? '', (lease.spec?.leaseDurationSeconds ?? 0) * 1000) // the holder may have a longer duration
  }

  /** Whether this process has seen one version of the Lease for so long that its holder counts as dead. */
  #isUnchanged(version: string, holderMs = 0): boolean {
    const { clock, times } = this.#options
    if (version !== this.#seenVersion) {
      this.#seenVersion = version
      this.#seenAtMs = clock.monotonic()
    }
    return clock.monotonic() - this.#seenAtMs >= Math.max(times.durationMs, holderMs)
  }

  #read(): Promise<Lease | undefined> {
    return this.#options.kube.get(leases, { namespace: this.#options.namespace, name: LEASE_NAME })
  }

  #remember(lease: Lease, sentAtMs: number): void {
    this.#lease = lease
    this.#holds = true
    this.#fence = Math.max(this.#fence, lease.spec?.leaseTransitions ?? 0)
    this.#renewedAtMs = Math.max(this.#renewedAtMs, sentAtMs)
  }

  #spec(current: Lease | undefined): NonNullable<Lease['spec']> {
    const { clock, identity, times } = this.#options
    const renewTime = microTime(clock.now())
    return { ...current?.spec, holderIdentity: identity, leaseDurationSeconds: Math.ceil(times.durationMs / 1000), renewTime }
  }

  #overdue(): boolean {
    return this.#options.clock.monotonic() - this.#renewedAtMs >= this.#options.times.renewMs
  }

  #lose(reason: string): void {
    if (this.#state !== 'Leading') return
    this.#state = 'Lost'
    this.#stopped.abort()
    this.#options.onLost(reason)
  }

  /** Taking, renewing, annotating and raising the fence change the same object: one at a time. */
  #exclusive<R>(write: () => Promise<R>): Promise<R> {
    const mine = this.#writing.then(() => this.#bounded(write))
    this.#writing = mine.catch(() => undefined) // its own caller receives the error
    return mine
  }
}

/** A Lease with its annotations patched. */
function withAnnotations(lease: Lease, patch: AnnotationPatch): Lease {
  const patched = Object.entries({ ...lease.metadata.annotations, ...patch })
  const annotations = Object.fromEntries(patched.flatMap(([name, value]) => (value === null ? [] : [[name, value]])))
  return { ...lease, metadata: { ...lease.metadata, annotations } }
}
