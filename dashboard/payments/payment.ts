/** A payment as its provider knows it now, in our words. All decisions are made of these facts, never of the content of an event. */

/** A refund of a payment, or of a part of it. Amounts are in minor units. */
export interface RefundFact {
  readonly id: string
  readonly amount: number
  readonly currency: string
  /** s since 1970, as all times here */
  readonly created: number
  /** When the money came back to us, because the refund failed or was cancelled. */
  readonly returned: number | undefined
}

/** A dispute in which a bank asks for the money back. */
export interface DisputeFact {
  readonly id: string
  readonly amount: number
  readonly currency: string
  /** When the bank took the money. An opened dispute alone takes nothing. */
  readonly withdrawn: number | undefined
  /** When the bank gave the money back. */
  readonly reinstated: number | undefined
}

/** What was asked for, by one page of the provider. */
export interface SessionFact {
  readonly id: string
  readonly isLive: boolean
  /** Lower-case code. */
  readonly currency: string
  /** With tax; minor units. */
  readonly total: number | undefined
  /** Tax and shipping, which are no credit. */
  readonly beside: number
  readonly state: 'open' | 'processing' | 'paid' | 'failed' | 'expired'
  /** Who paid, as we wrote it when the page was made. */
  readonly clientReference: string | undefined
  readonly metadata: Readonly<Record<string, string>>
  /** Id of the payment; absent before it begins. */
  readonly payment: string | undefined
}

export interface Payment {
  readonly session: SessionFact
  readonly refunds: readonly RefundFact[]
  readonly disputes: readonly DisputeFact[]
}

/** Metadata that ties a payment to an account of this installation. */
export const METADATA = { installation: 'headgate_installation', account: 'headgate_account', uid: 'headgate_account_uid' } as const
