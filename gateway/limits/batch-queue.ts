import type { LedgerBatch, RateKind, SlotAmount, UsageCounters } from '../shared/ledger-call.ts'
import { bookingSlot, LEDGER_CAPS, type LedgerTiming } from '../shared/ledger-layout.ts'
import type { Booking, Piece } from './booking.ts'
import type { RateLease } from './rate-lease.ts'
import { addUsage } from './usage-counters.ts'

interface FrozenBatch {
  readonly number: number
  readonly refunds: readonly Piece[]
  readonly bookings: readonly Piece[]
  readonly debts: Readonly<Record<RateKind, number>>
  readonly usage: readonly UsageCounters[]
}

/**
 * Changes of one subject on their way to the store. What has been sent is frozen until the store acknowledges it, and is sent again
 * under the same number: a lost reply cannot count twice.
 */
export class BatchQueue {
  readonly #leases: readonly RateLease[]
  readonly #timing: LedgerTiming
  readonly #debts: Record<RateKind, number> = { r: 0, t: 0 }
  #usage = new Map<string, UsageCounters>()
  #frozen: FrozenBatch | undefined

  constructor(leases: readonly RateLease[], timing: LedgerTiming) {
    this.#leases = leases
    this.#timing = timing
  }

  owe(kind: RateKind, amount: number): void {
    this.#debts[kind] += amount
  }

  count(usage: UsageCounters): void {
    this.#usage.set(usage.model, addUsage(this.#usage.get(usage.model), usage))
  }

  get isEmpty(): boolean {
    return !this.#frozen && this.#debts.r + this.#debts.t === 0 && this.#usage.size === 0 && this.#changed().length === 0
  }

  /** The batch to send. @param nextNumber called only for a new batch */
  freeze(nextNumber: () => number): LedgerBatch | undefined {
    if (!this.#frozen && this.isEmpty) return undefined
    this.#frozen ??= this.#collect(nextNumber())
    const { number, refunds, bookings, debts, usage } = this.#frozen
    return { number, refunds: slotAmounts(refunds), bookings: slotAmounts(bookings), debts, usage }
  }

  /** The store has counted the batch. @param callNumber the call that carried it @param nowMs time of the store */
  acknowledged(callNumber: number, nowMs: number): void {
    if (!this.#frozen) return
    for (const { booking } of this.#frozen.bookings) booking.number = callNumber
    for (const lease of this.#leases) {
      const debt = this.#frozen.debts[lease.kind]
      if (debt > 0) lease.booked(bookingSlot(nowMs, 0, this.#timing), debt, callNumber)
    }
    this.#frozen = undefined
  }

  /**
   * The store has lost every call above `callNumber`: book again what those calls had booked, and return nothing of it.
   * @param batchNumber last batch that the store still knows
   */
  lost(callNumber: number, batchNumber: number): void {
    const frozen = this.#frozen
    this.#frozen = undefined
    for (const lease of this.#leases) {
      for (const booking of lease.bookings) {
        if (booking.number <= callNumber) continue
        booking.refund = 0
        booking.isSent = false
        booking.number = Infinity
      }
    }
    if (!frozen || frozen.number <= batchNumber) return
    for (const { booking, amount } of frozen.refunds) if (booking.isSent) booking.refund += amount
    for (const usage of frozen.usage) this.count(usage)
    this.#debts.r += frozen.debts.r
    this.#debts.t += frozen.debts.t
  }

  #changed(): Booking[] {
    return this.#leases.flatMap((lease) => lease.bookings.filter(({ refund, isSent }) => refund > 0 || !isSent))
  }

  #collect(number: number): FrozenBatch {
    const changed = this.#changed()
    const refunds = changed
      .filter(({ refund }) => refund > 0)
      .slice(0, LEDGER_CAPS.refunds)
      .map((booking) => ({ booking, amount: booking.refund }))
    const bookings = changed
      .filter(({ isSent }) => !isSent)
      .slice(0, LEDGER_CAPS.bookings)
      .map((booking) => ({ booking, amount: booking.net }))
    for (const { booking } of refunds) booking.refund = 0
    for (const { booking } of bookings) booking.isSent = true
    const usage = [...this.#usage.values()].slice(0, LEDGER_CAPS.usage)
    for (const { model } of usage) this.#usage.delete(model)
    const debts = { ...this.#debts }
    this.#debts.r = 0
    this.#debts.t = 0
    return { number, refunds, bookings, debts, usage }
  }
}

/** One row per slot: bookings of one slot merge. */
function slotAmounts(pieces: readonly Piece[]): SlotAmount[] {
  const merged = new Map<string, SlotAmount>()
  for (const { booking, amount } of pieces) {
    const { kind, slot } = booking
    if (amount <= 0) continue
    const id = `${kind}:${slot}`
    merged.set(id, { kind, slot, amount: amount + (merged.get(id)?.amount ?? 0) })
  }
  return [...merged.values()]
}
