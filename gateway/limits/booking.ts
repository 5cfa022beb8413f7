import type { RateKind } from '#contract/ledger/ledger-call.ts'

/** Units that this process has booked in one slot of a rolling window: first a lease, later the used units of that lease. */
export interface Booking {
  readonly kind: RateKind
  readonly slot: number
  /**
   * Number of the call with this booking; Infinity until the store has acknowledged it. A store that lost the call has lost the booking.
   */
  number: number
  /** Booked units: granted minus returned. */
  net: number
  /** Unused units. */
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

/** The part of a booking that one request uses. */
export interface Piece {
  readonly booking: Booking
  amount: number
}
