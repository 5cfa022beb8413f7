/** The balance and its movements, as the routes below `/api/billing` answer them. Amounts are decimal text with a sign if negative. */

export type PaymentProvider = 'none' | 'manual' | 'stripe'

export interface Movement {
  /** RFC 3339 of a Credit; a UTC day or month of spend; '' for spend that is not itemised. */
  readonly time: string
  readonly type: 'TopUp' | 'Grant' | 'Refund' | 'Dispute' | 'Adjustment' | 'Spend'
  /** Name of the Credit; '' for spend. */
  readonly id: string
  readonly reference: string
  readonly amount: string
  /** After this movement. */
  readonly balance: string
}

/** A payment that the provider has taken on and not yet confirmed, or that was confirmed and is not yet a Credit. */
export interface PendingTopUp {
  /** When the person paid, RFC 3339. */
  readonly time: string
  readonly amount: string
  /** What the provider says about the way of payment: `SEPA debit`; '' if nothing. */
  readonly method: string
}

/** How a payment stands. `open`: the person has not finished paying. `processing`: the bank has not confirmed it. */
export interface TopUpState {
  readonly state: 'open' | 'processing' | 'paid' | 'failed' | 'expired'
}

/** GET /api/billing */
export interface Billing {
  readonly account: string
  readonly currency: string
  readonly isPrepaid: boolean
  /** Sum of all movements. */
  readonly balance: string
  /** Of this UTC month. */
  readonly spentThisMonth: string
  readonly asOf: string
  readonly incomplete: readonly string[]
  /** Newest first. */
  readonly movements: readonly Movement[]
  /** Newest first, not counted in the balance. Absent: none. */
  readonly pending?: readonly PendingTopUp[]
  readonly payments: {
    readonly provider: PaymentProvider
    /** Amounts that the page offers, decimal; none with `none` and `manual`. */
    readonly amounts: readonly string[]
    /** What one payment may be at least and at most, decimal, with `stripe`. */
    readonly least?: string
    readonly most?: string
    /** The line that an administrator runs, with `manual` in `make run`. */
    readonly command?: string
  }
}

/** POST /api/billing/top-up */
export interface TopUpStart {
  /** The page of the payment provider. It leads back to `/billing?top-up=paid&session=…` or `/billing?top-up=cancelled`. */
  readonly url: string
}

/*
 * Routes:
 *   GET  /api/billing                → Billing
 *   GET  /api/billing/ledger.csv     → a CSV file, oldest first
 *   GET  /receipts/{reference}       → a redirect to the provider's receipt of a TopUp (with `stripe`); 404 without a receipt
 *   POST /api/billing/top-up {amount, attempt} → TopUpStart (with `stripe`). `attempt` is 8 to 64 letters, digits, - and _, drawn once for
 *                                each amount that a person picks: a retry gets the same page. 422 with `fields.amount`; 409 where nothing is prepaid
 *   POST /api/billing/top-up/check {session} → TopUpState: credits a payment that is paid, so that a person need not wait for the provider's
 *                                message; 404 for one of another account
 */
