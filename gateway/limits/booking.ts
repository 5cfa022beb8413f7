import type { RateKind } from '../shared/ledger-call.ts'

/** Units that this process has booked in one slot of a rolling window: first a lease, later the units that were used of it. */
export interface Booking {
  readonly kind: RateKind
  readonly slot: number
  /**
   * Number of the call that booked it; Infinity until the store has acknowledged it. A store that has lost this call has lost the booking.
   */
  number: number
  /** Booked units: granted minus returned. */
  net: number
  /** Units that are not used yet. */
  left: number
  /** End of the lease, monotonic ms; no unit is used afterwards. */
  expiresAt: number
  /** Units that the next batch returns; `net` no longer counts them. */
  refund: number
  /** False for an admission without the store that no batch holds yet. */
  isSent: boolean
  /** Whether it is in the list for the next batch. */
  isChanged: boolean
}

/** The part of a booking that one request uses. */
export interface Piece {
  readonly booking: Booking
  amount: number
}
