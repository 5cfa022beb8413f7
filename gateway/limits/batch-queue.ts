import type { LedgerBatch, RateKind, SlotAmount } from '#contract/ledger/ledger-call.ts'
import { bookingSlot, LEDGER_CAPS, MAX_SUM, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { Booking, Piece, RateLease } from './rate-lease.ts'

interface FrozenBatch {
  readonly number: number
  readonly refunds: readonly Piece[]
  readonly bookings: readonly Piece[]
  readonly debts: Readonly<Record<RateKind, number>>
}

/** A sent batch stays as it is until it is acknowledged, and is sent again under its number: a lost reply cannot count twice. */
export class BatchQueue {
  readonly #requests: RateLease
  readonly #tokens: RateLease
  readonly #timing: LedgerTiming
  /** Tokens used in excess of holds. */
  #debt = 0
  #frozen: FrozenBatch | undefined

  constructor(requests: RateLease, tokens: RateLease, timing: LedgerTiming) {
    this.#requests = requests
    this.#tokens = tokens
    this.#timing = timing
  }

  owe(tokens: number): void {
    this.#debt = Math.min(MAX_SUM, this.#debt + tokens)
  }

  get isEmpty(): boolean {
    if (this.#frozen !== undefined || this.#debt > 0) return false
    return !this.#requests.hasChanges && !this.#tokens.hasChanges
  }

  /** Whether there are tokens in excess of a hold, which other processes should learn soon. */
  get hasDebt(): boolean {
    return this.#debt > 0
  }

  /** Returns the batch to send. @param nextNumber called only for a new batch */
  freeze(nextNumber: () => number): LedgerBatch | undefined {
    if (!this.#frozen && this.isEmpty) return undefined
    this.#frozen ??= this.#collect(nextNumber())
    const { number, refunds, bookings, debts } = this.#frozen
    return { number, refunds: slotAmounts(refunds), bookings: slotAmounts(bookings), debts }
  }

  /** @param callNumber of the call that carried the batch @param nowMs time of the store */
  acknowledged(callNumber: number, nowMs: number): void {
    if (!this.#frozen) return
    for (const { booking } of this.#frozen.bookings) booking.number = callNumber
    const debt = this.#frozen.debts.t
    if (debt > 0) this.#tokens.booked(bookingSlot(nowMs, 0, this.#timing), debt, callNumber)
    this.#frozen = undefined
  }

  /** The store has lost every call above `callNumber`: their bookings are booked again. @param batchNumber last batch that it knows */
  lost(callNumber: number, batchNumber: number): void {
    const frozen = this.#frozen
    this.#frozen = undefined
    for (const lease of [this.#requests, this.#tokens]) {
      for (const booking of lease.bookings) {
        if (booking.number <= callNumber) continue
        booking.refund = 0
        booking.isSent = false
        booking.number = Infinity
        lease.change(booking)
      }
    }
    if (!frozen || frozen.number <= batchNumber) return
    for (const { booking, amount } of frozen.refunds) if (booking.isSent) this.#refundAgain(booking, amount)
    this.#debt += frozen.debts.t
  }

  #refundAgain(booking: Booking, amount: number): void {
    booking.refund += amount
    const lease = booking.kind === 'r' ? this.#requests : this.#tokens
    lease.change(booking)
  }

  #collect(number: number): FrozenBatch {
    const refunds: Piece[] = []
    const bookings: Piece[] = []
    for (const lease of [this.#requests, this.#tokens]) {
      if (!lease.hasChanges) continue
      for (const booking of lease.takeChanges()) {
        if (!collect(booking, refunds, bookings)) lease.change(booking)
      }
    }
    const debts = { r: 0, t: this.#debt }
    this.#debt = 0
    return { number, refunds, bookings, debts }
  }
}

function collect(booking: Booking, refunds: Piece[], bookings: Piece[]): boolean {
  if (!booking.isSent) {
    if (bookings.length >= LEDGER_CAPS.bookings) return false
    bookings.push({ booking, amount: booking.net })
    booking.isSent = true
  }
  if (booking.refund === 0) return true
  if (refunds.length >= LEDGER_CAPS.refunds) return false
  refunds.push({ booking, amount: booking.refund })
  booking.refund = 0
  return true
}

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
