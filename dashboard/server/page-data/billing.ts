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
  readonly payments: {
    readonly provider: PaymentProvider
    /** Amounts that the page offers, decimal; '' of them with `none` and `manual`. */
    readonly amounts: readonly string[]
    /** The line that an administrator runs, with `manual` in `make run`. */
    readonly command?: string
  }
}

/*
 * Routes:
 *   GET  /api/billing                → Billing
 *   GET  /api/billing/ledger.csv     → a CSV file, oldest first
 *   POST /api/billing/top-up {amount, attempt} → {url}: the page of the payment provider (with `stripe`)
 */
