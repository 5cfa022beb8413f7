import { bookingSlot, longestLeaseMs, slotCount, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { NEVER } from '#contract/ledger/ledger-call.ts'

/** Amounts booked in slots. A slot counts until the time of its start. The Redis library does the same on a hash. */
export class RollingWindow {
  readonly #timing: LedgerTiming
  readonly #slots = new Map<number, number>()
  #total = 0
  #oldest = 0
  #newest = 0

  constructor(timing: LedgerTiming) {
    this.#timing = timing
  }

  get total(): number {
    return this.#total
  }

  get slots(): ReadonlyMap<number, number> {
    return this.#slots
  }

  /** Drops the slots that have ended. @param nowMs time of the store */
  sweep(nowMs: number): void {
    const present = Math.floor(nowMs / this.#timing.slotMs)
    if (present < this.#oldest) return
    for (const [slot, amount] of this.#slots) {
      if (slot > present) continue
      this.#total -= amount
      this.#slots.delete(slot)
    }
    this.#oldest = present + 1
  }

  /** After the clock went back: moves all amounts into the last slot within reach of bookings, because old slots would stay too long. */
  collapse(nowMs: number): void {
    const last = this.#lastSlot(nowMs)
    this.#slots.clear()
    if (this.#total > 0) this.#slots.set(last, this.#total)
    this.#oldest = Math.floor(nowMs / this.#timing.slotMs) + 1
    this.#newest = this.#total > 0 ? last : 0
  }

  /** Books an amount. A slot above the reach of leases counts as the last slot within reach; a slot that has ended is ignored. */
  book(slot: number, amount: number, nowMs: number): void {
    const reached = Math.min(slot, this.#lastSlot(nowMs))
    if (amount <= 0 || reached < this.#oldest) return
    this.#slots.set(reached, (this.#slots.get(reached) ?? 0) + amount)
    this.#total += amount
    this.#newest = Math.max(this.#newest, reached)
  }

  refund(slot: number, amount: number): void {
    const booked = this.#slots.get(slot)
    if (booked === undefined) return
    const back = Math.min(booked, amount)
    this.#total -= back
    if (back === booked) this.#slots.delete(slot)
    else this.#slots.set(slot, booked - back)
  }

  /** ms until the newest booking ends; 0 without bookings. */
  resetMs(nowMs: number): number {
    return this.#total > 0 ? Math.max(0, this.#newest * this.#timing.slotMs - nowMs) : 0
  }

  /** ms until `need` fits below `limit` without further bookings; 0 if it fits now, NEVER if it exceeds the limit. */
  waitMs(need: number, limit: number, nowMs: number): number {
    if (need > limit) return NEVER
    let missing = this.#total + need - limit
    if (missing <= 0) return 0
    for (let slot = this.#oldest; slot <= this.#oldest + slotCount(this.#timing); slot += 1) {
      missing -= this.#slots.get(slot) ?? 0
      if (missing <= 0) return slot * this.#timing.slotMs - nowMs
    }
    return this.resetMs(nowMs)
  }

  #lastSlot(nowMs: number): number {
    return bookingSlot(nowMs, longestLeaseMs(this.#timing), this.#timing)
  }
}
