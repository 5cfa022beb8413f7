import type { RateKind } from '../shared/ledger-call.ts'

/** Units that this process has booked in one slot of a rolling window: a lease, and afterwards what was used under it. */
export interface Booking {
  readonly kind: RateKind
  readonly slot: number
  /** Call that booked it; Infinity until the store has acknowledged. A store that forgot this call has lost the booking. */
  number: number
  /** What stays booked: granted minus returned. */
  net: number
  /** Not used yet. */
  left: number
  /** Monotonic ms; no unit is used from then on. */
  expiresAt: number
  /** Units that the next batch returns; `net` no longer counts them. */
  refund: number
  /** False for an admission without the store that no batch holds yet. */
  isSent: boolean
  /** It stands in the list of what the next batch tells. */
  isChanged: boolean
}

/** Part of a booking that one request uses. */
export interface Piece {
  readonly booking: Booking
  amount: number
}
