import type { PermitReply, PermitRequest } from '#contract/ledger/ledger-call.ts'
import { GRANTS, PERMIT_LIFE_MS } from '#contract/ledger/ledger-layout.ts'
import { localShare, type Waiting } from './rate-lease.ts'

/** Interval of permit reports, shorter than the time after which the store forgets permits, ms. */
const RENEW_MS = 5_000
const IDLE_MS = 1_000
/** A process asks for one idle permit per this many running requests. */
const RUNNING_PER_IDLE = 4

/** Permits of one subject in one process. Times are monotonic ms. */
export class PermitPool {
  limit: number | undefined
  #running = 0
  #idle = 0
  /** The store's count for this process; undefined if unknown. */
  #acknowledged: number | undefined = 0
  #reportedAt = -Infinity
  #rest = 0
  #usedAt = -Infinity

  canTake(now: number): boolean {
    return this.limit === undefined || (this.#idle > 0 && !this.#isExpired(now))
  }

  /** Takes an idle permit. @returns the argument for `free` */
  take(now: number): number {
    if (this.limit === undefined) return 0
    this.#usedAt = now
    this.#idle -= 1
    this.#running += 1
    return 1
  }

  /** Ends a request. @returns true if the store should know at once: others may wait for this permit */
  free(permits: number, now: number, live: number): boolean {
    if (permits === 0) return false
    this.#running -= permits
    const isRoomy = this.limit !== undefined && this.limit >= GRANTS.idlePermitsFrom * live && 2 * this.#rest >= this.limit
    if (isRoomy && !this.#isExpired(now)) this.#idle += permits
    return !isRoomy
  }

  request(waiting: Waiting, now: number): PermitRequest | undefined {
    if (this.limit === undefined && this.#held === this.#acknowledged && this.#held === 0) return undefined
    if (this.#isExpired(now)) this.#idle = 0
    const need = Math.max(0, waiting.first - this.#idle)
    const ask = Math.max(need, waiting.all - this.#idle)
    const want = waiting.all > 0 ? Math.floor(this.#running / RUNNING_PER_IDLE) : 0
    return { limit: this.limit ?? 0, held: this.#held, need, ask, want }
  }

  /** Notes that the store has counted the report. @param reply undefined if the call ended before the grants */
  reported(request: PermitRequest, reply: PermitReply | undefined, sentAt: number): void {
    const grant = reply?.grant ?? 0
    this.#idle += grant
    if (grant > 0) this.#usedAt = sentAt
    this.#acknowledged = request.held + grant
    this.#reportedAt = sentAt
    if (reply) this.#rest = reply.rest
  }

  forgetReport(): void {
    this.#acknowledged = undefined
  }

  tick(now: number): void {
    const isTight = this.limit !== undefined && 2 * this.#rest < this.limit
    if (isTight || now - this.#usedAt >= IDLE_MS) this.#idle = 0
  }

  end(): void {
    this.#idle = 0
  }

  get isChanged(): boolean {
    return this.#held !== this.#acknowledged
  }

  /** Whether the store has another count, or will soon forget this one. */
  isReportDue(now: number): boolean {
    return this.isChanged || (this.#held > 0 && now - this.#reportedAt >= RENEW_MS)
  }

  get isIdle(): boolean {
    return this.#held === 0 && this.#acknowledged === 0
  }

  /** Over all processes, as of the last answer. */
  get state(): { readonly limit: number; readonly used: number } | undefined {
    return this.limit === undefined ? undefined : { limit: this.limit, used: this.limit - this.#rest }
  }

  canTakeLocal(live: number, windowMs: number): boolean {
    return this.limit === undefined || this.#running < localShare(this.limit, live, windowMs).units
  }

  takeLocal(): number {
    if (this.limit === undefined) return 0
    this.#running += 1
    return 1
  }

  get #held(): number {
    return this.#running + this.#idle
  }

  #isExpired(now: number): boolean {
    return now >= this.#reportedAt + PERMIT_LIFE_MS
  }
}
