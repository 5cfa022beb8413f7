import { bookingSlot, longestLeaseMs, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { RateKind, RateReply, RateRequest } from '#contract/ledger/ledger-call.ts'
import { DemandAverage } from './demand-average.ts'
import type { RateState } from './ledger.ts'
import { appended, emptyList, kept } from './short-list.ts'

/** Units that this process has booked in one slot of a rolling window: first a lease, later the used units of that lease. */
export interface Booking {
  readonly kind: RateKind
  readonly slot: number
  /** Call with this booking; Infinity until acknowledged. A store that lost the call has lost the booking. */
  number: number
  /** Booked units: granted minus returned. */
  net: number
  left: number
  /** End of the lease, monotonic ms; no unit is used afterwards. */
  expiresAt: number
  /** Units that the next batch returns; `net` no longer counts them. */
  refund: number
  /** False for an admission without the store while no batch contains it. */
  isSent: boolean
  /** Whether the booking is in the list for the next batch. */
  isChanged: boolean
}

export interface Piece {
  readonly booking: Booking
  amount: number
}

/** Units that requests wait for: those of the first request, and those of all. */
export interface Waiting {
  readonly first: number
  readonly all: number
}

export const NO_WAITING: Waiting = { first: 0, all: 0 }

/** A refill is due when one part in `REFILL_PART` of the last grant is left. */
const REFILL_PART = 4
/** A limit is roomy if one part in `ROOMY_PART` and at least `ROOMY_UNITS` are free: one free request of 3 would be the last. */
const ROOMY_PART = 4
const ROOMY_UNITS = 10
/** Number of likely requests from which the lease asks for a long life. */
export const MIN_AHEAD = 2
/** Life of a lease without further demand, ms. A lease that ends before its reply arrives would be useless. */
const SHORT_LEASE_MS = 50

/** One rate limit of one subject in one process: leases to spend, and own bookings of the last window. Times are monotonic ms. */
export class RateLease {
  readonly kind: RateKind
  limit: number | undefined
  readonly #timing: LedgerTiming
  /** Undefined without demand. */
  #demand: DemandAverage | undefined
  #leases: Booking[] = emptyList()
  #used: Booking[] = emptyList()
  #changed: Booking[] = emptyList()
  #lastGrant = 0
  #rest = 0
  #resetAt = 0
  #lastLocalAt: number | undefined
  /** Whether the last lease had ended before its reply arrived. */
  #wasLate = false

  constructor(kind: RateKind, timing: LedgerTiming) {
    this.kind = kind
    this.#timing = timing
  }

  /** Takes over a limit. A lower one ends the leases at once. */
  adopt(limit: number | undefined): void {
    const isLowered = this.limit !== undefined && (limit === undefined || limit < this.limit)
    this.limit = limit
    if (isLowered) this.end()
  }

  available(now: number): number {
    let sum = 0
    for (const { left, expiresAt } of this.#leases) if (now < expiresAt) sum += left
    return sum
  }

  /** Takes units that are available, from the lease that ends first. */
  take(amount: number, now: number): Piece[] {
    this.#demand ??= new DemandAverage(now)
    this.#demand.add(amount)
    const pieces: Piece[] = []
    let missing = amount
    for (const booking of this.#leases) {
      const part = now < booking.expiresAt ? Math.min(missing, booking.left) : 0
      if (part <= 0) continue
      booking.left -= part
      missing -= part
      pieces.push({ booking, amount: part })
    }
    return pieces
  }

  /** Returns units of a request: to their lease while the lease lives, otherwise to the store. Each unit of a piece is returned once. */
  giveBack(pieces: readonly Piece[], amount: number, now: number): void {
    let missing = amount
    for (let at = pieces.length - 1; at >= 0 && missing > 0; at -= 1) {
      const piece = pieces[at]
      if (!piece) return
      const part = Math.min(missing, piece.amount)
      missing -= part
      piece.amount -= part
      if (now < piece.booking.expiresAt) piece.booking.left += part
      else this.#return(piece.booking, part)
    }
  }

  /** The request to the store. @param live processes that share the limit */
  request(waiting: Waiting, now: number): RateRequest | undefined {
    if (this.limit === undefined) return undefined
    const available = this.available(now)
    const need = Math.max(0, waiting.first - available)
    const ask = Math.max(need, waiting.all - available)
    const { want, leaseMs } = this.#expected(ask, now)
    return { kind: this.kind, limit: this.limit, need, ask, want, leaseMs }
  }

  /** Whether to ask before a request waits: demand continues, and the leases are nearly used up or about to end. */
  isRefillDue(now: number, tickMs: number): boolean {
    if (this.limit === undefined || this.#rest <= 0) return false
    if (this.#demand === undefined || this.#demand.within(this.#timing.leaseMs) === 0) return false
    const lasting = this.available(now + tickMs)
    return lasting * REFILL_PART <= this.#lastGrant
  }

  /** @param lease of the request; `sentAt` is the time of the call, so that the lease ends here before it ends in the store */
  granted(reply: RateReply, lease: { readonly number: number; readonly sentAt: number; readonly leaseMs: number }, now: number): void {
    this.#rest = reply.rest
    this.#resetAt = now + reply.resetMs
    if (reply.grant <= 0) return
    this.#lastGrant = reply.grant
    const expiresAt = lease.sentAt + lease.leaseMs
    this.#wasLate = now >= expiresAt
    const booking = newBooking(this.kind, reply.slot, lease.number)
    this.#leases = appended(this.#leases, Object.assign(booking, { net: reply.grant, left: reply.grant, expiresAt }))
  }

  /** Books the tokens in excess of a hold, which the store has booked for this process by itself. */
  booked(slot: number, amount: number, number: number): void {
    this.#used = appended(this.#used, Object.assign(newBooking(this.kind, slot, number), { net: amount }))
  }

  /** Ends expired leases and forgets bookings whose slot has ended. @returns true if unused units are returned */
  tick(now: number, storeNow: number): boolean {
    if (this.#demand?.tick(now)) this.#demand = undefined
    const isGivenBack = this.endExpired(now)
    const present = Math.floor(storeNow / this.#timing.slotMs)
    this.#used = kept(this.#used, (booking) => !isOver(booking, present))
    this.#changed = kept(this.#changed, (booking) => !isOver(booking, present))
    return isGivenBack
  }

  /** Returns the unused units of leases that have ended. @returns whether there were any */
  endExpired(now: number): boolean {
    if (!this.#leases.some(({ expiresAt }) => now >= expiresAt)) return false
    const ended = this.#leases.filter(({ expiresAt }) => now >= expiresAt)
    const isUnused = ended.some(({ left }) => left > 0)
    this.#end(ended)
    return isUnused
  }

  /** Ends every lease now and returns unused units. Leases nothing ahead until there is demand again. Running requests keep their units. */
  end(): void {
    this.#demand = undefined
    this.#end(this.#leases)
  }

  get hasChanges(): boolean {
    return this.#changed.length > 0
  }

  /** Marks a booking that the store does not know, or knows with another amount. */
  change(booking: Booking): void {
    if (booking.isChanged) return
    booking.isChanged = true
    this.#changed = appended(this.#changed, booking)
  }

  /** Returns the bookings with changes and unmarks them. */
  takeChanges(): readonly Booking[] {
    const changed = this.#changed
    this.#changed = emptyList()
    for (const booking of changed) booking.isChanged = false
    return changed
  }

  /** Bookings that still count somewhere. */
  get bookings(): readonly Booking[] {
    return [...this.#leases, ...this.#used]
  }

  get isBrisk(): boolean {
    return this.#demand?.isBrisk ?? false
  }

  get hasLeases(): boolean {
    return this.#leases.length > 0
  }

  /** Enough of the limit was free at the last reply, so no request of another process waits for units that this process returns. */
  get isRoomy(): boolean {
    return this.limit === undefined || (this.#rest * ROOMY_PART >= this.limit && this.#rest >= ROOMY_UNITS)
  }

  /** Whether this object has no state that a later call needs. */
  get isIdle(): boolean {
    return this.#leases.length + this.#used.length === 0
  }

  state(now: number): RateState | undefined {
    if (this.limit === undefined) return undefined
    const remaining = Math.max(0, Math.min(this.limit, this.available(now) + this.#rest))
    return { limit: this.limit, remaining, resetMs: Math.max(0, Math.ceil(this.#resetAt - now)) }
  }

  /** ms until this process may admit `amount` without the store; 0: now. */
  localWaitMs(amount: number, now: number, { live, storeNow }: { readonly live: number; readonly storeNow: number }): number {
    if (this.limit === undefined) return 0
    const { units, spacingMs } = localShare(this.limit, live, this.#timing.windowMs)
    const spacing = Math.max(0, (this.#lastLocalAt ?? -Infinity) + spacingMs - now)
    const counting = this.#counting(storeNow)
    const used = counting.reduce((sum, { net, left }) => sum + net - left, 0)
    let missing = used + Math.min(amount, units) - units
    if (missing <= 0) return spacing
    for (const { slot, net, left } of counting.toSorted((a, b) => a.slot - b.slot)) {
      missing -= net - left
      if (missing <= 0) return Math.max(spacing, slot * this.#timing.slotMs - storeNow)
    }
    return this.#timing.windowMs
  }

  /** Admits without the store. The next batch books it there. */
  takeLocal(amount: number, now: number, storeNow: number): Piece[] {
    if (amount <= 0) return []
    this.#lastLocalAt = now
    const slot = bookingSlot(storeNow, 0, this.#timing)
    let booking = this.#used.find((other) => !other.isSent && other.slot === slot)
    if (!booking) {
      booking = newBooking(this.kind, slot, Infinity)
      booking.isSent = false
      this.#used = appended(this.#used, booking)
      this.change(booking)
    }
    booking.net += amount
    return [{ booking, amount }]
  }

  #counting(storeNow: number): Booking[] {
    const present = Math.floor(storeNow / this.#timing.slotMs)
    return this.bookings.filter((booking) => !isOver(booking, present))
  }

  /** A lease about to end does not reduce the demand. While most of it is leased, every call would bring one more small lease. */
  #expected(ask: number, now: number): { readonly want: number; readonly leaseMs: number } {
    const { leaseMs } = this.#timing
    const isLong = this.limit !== undefined && 2 * this.#rest >= this.limit && !this.#usesHalf(this.limit)
    const longMs = isLong ? longestLeaseMs(this.#timing) : leaseMs
    const expected = this.#demand?.within(longMs, isLong ? MIN_AHEAD : 1) ?? 0
    const lasting = this.available(now + leaseMs / REFILL_PART)
    const want = lasting * REFILL_PART <= expected ? expected - lasting : 0
    return want > ask ? { want, leaseMs: longMs } : { want: 0, leaseMs: this.#wasLate ? leaseMs : Math.min(leaseMs, SHORT_LEASE_MS) }
  }

  /**
   * Whether the demand would use more than half of the limit within a window. Units count until their window and the life of their lease are
   * over, so long leases would leave a part of such a limit unused.
   */
  #usesHalf(limit: number): boolean {
    return 2 * (this.#demand?.within(this.#timing.windowMs) ?? 0) > limit
  }

  #return(booking: Booking, amount: number): void {
    booking.net -= amount
    if (!booking.isSent || amount === 0) return
    booking.refund += amount
    this.change(booking)
  }

  #end(leases: readonly Booking[]): void {
    for (const booking of leases) {
      const { left } = booking
      booking.left = 0
      booking.expiresAt = 0
      this.#return(booking, left)
    }
    this.#used = this.#used.length === 0 ? [...leases] : this.#used.concat(leases)
    this.#leases = kept(this.#leases, (booking) => !leases.includes(booking))
  }
}

function newBooking(kind: RateKind, slot: number, number: number): Booking {
  return { kind, slot, number, net: 0, left: 0, expiresAt: 0, refund: 0, isSent: true, isChanged: false }
}

function isOver({ slot }: Booking, present: number): boolean {
  return slot <= present
}

/**
 * What one process may admit while the store is unavailable: its part of the limit in any rolling window, and the least time between two
 * admissions, ms; 0 unless the part is below one unit.
 * @param live processes that share the limit, at least 1
 */
export function localShare(limit: number, live: number, windowMs: number): { readonly units: number; readonly spacingMs: number } {
  const units = Math.floor(limit / live)
  return units >= 1 ? { units, spacingMs: 0 } : { units: 1, spacingMs: Math.ceil((windowMs * live) / Math.max(1, limit)) }
}
