/** The payment provider, as this program uses it. */
import type { Payment } from './payment.ts'

/** What a page of the provider asks for. */
export interface Order {
  readonly account: { readonly name: string; readonly uid: string }
  /** Minor units. */
  readonly amount: number
  /** The verified address of the person, for the receipt. */
  readonly email: string
  /** The same at a retry, which then gets the same page. */
  readonly attempt: string
}

/** What happened at the provider: which payment to look up. Its other content does not count. */
export interface ProviderEvent {
  readonly id: string
  readonly type: string
  /** s since 1970 */
  readonly created: number
  /** undefined: it is about no payment that we know of. */
  readonly about: { readonly session: string } | { readonly payment: string } | undefined
}

export interface Receipt {
  readonly url: string
  /** Of the payment. */
  readonly metadata: Readonly<Record<string, string>>
}

export interface PaymentProvider {
  /** @returns where the person pays */
  open(order: Order): Promise<{ readonly id: string; readonly url: string }>
  /** @returns undefined without such a session */
  bySession(id: string): Promise<Payment | undefined>
  /** @returns undefined for a payment that no session asked for */
  byPayment(id: string): Promise<Payment | undefined>
  /** Where the provider shows the receipt of a payment. @returns undefined without such a payment, and for one without a receipt */
  receipt(payment: string): Promise<Receipt | undefined>
  /** Events that may move money, since a time. @param since s since 1970 */
  events(since: number): AsyncIterable<ProviderEvent>
  /** Reads an event that was sent to us. @throws ForgedEvent unless the provider has signed exactly this body in the last five minutes */
  read(body: Buffer, signature: string): ProviderEvent
}

/** An event that the provider has not sent. */
export class ForgedEvent extends Error {
  override readonly name = 'ForgedEvent'
}

/** The provider does not answer, or refuses. */
export class ProviderFailed extends Error {
  override readonly name = 'ProviderFailed'
}
