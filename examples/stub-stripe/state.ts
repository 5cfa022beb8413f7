/** What a stand-in for Stripe knows, in Stripe's form, and what people and banks do to it. */
import { randomBytes } from 'node:crypto'

export interface StubSession {
  readonly id: string
  readonly object: 'checkout.session'
  readonly mode: 'payment'
  readonly livemode: boolean
  readonly currency: string
  readonly amount_total: number
  readonly client_reference_id: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly total_details: { readonly amount_tax: number; readonly amount_shipping: number; readonly amount_discount: number }
  readonly success_url: string
  readonly cancel_url: string
  readonly url: string
  readonly created: number
  status: 'open' | 'complete' | 'expired'
  payment_status: 'paid' | 'unpaid'
  payment_intent: { readonly id: string; readonly object: 'payment_intent'; status: string } | null
}

export interface StubRefund {
  readonly id: string
  readonly object: 'refund'
  readonly amount: number
  readonly currency: string
  readonly created: number
  readonly payment_intent: string
  status: 'succeeded' | 'failed'
  failure_balance_transaction?: { readonly id: string; readonly created: number }
}

export interface StubDispute {
  readonly id: string
  readonly object: 'dispute'
  readonly amount: number
  readonly currency: string
  readonly created: number
  readonly livemode: boolean
  readonly payment_intent: string
  status: 'needs_response' | 'won' | 'lost'
  readonly balance_transactions: { readonly id: string; readonly amount: number; readonly created: number }[]
}

export interface StubEvent {
  readonly id: string
  readonly object: 'event'
  readonly type: string
  readonly created: number
  readonly livemode: boolean
  readonly data: { readonly object: object }
}

/** What is asked for with a new session. */
export type StubOrder = Pick<StubSession, 'currency' | 'amount_total' | 'client_reference_id' | 'metadata' | 'success_url' | 'cancel_url'>

/** The objects and the events, newest last. Every act makes its events; nobody has sent them yet. */
export class StubState {
  readonly sessions: StubSession[] = []
  readonly refunds: StubRefund[] = []
  readonly disputes: StubDispute[] = []
  readonly events: StubEvent[] = []
  readonly #now: () => number
  readonly #isLive: boolean

  /** @param now s since 1970 */
  constructor(isLive: boolean, now: () => number) {
    this.#isLive = isLive
    this.#now = now
  }

  open(order: StubOrder, pageOf: (id: string) => string): StubSession {
    const id = this.#id(this.#isLive ? 'cs_live_' : 'cs_test_')
    const session: StubSession = {
      ...order,
      ...{ id, object: 'checkout.session', mode: 'payment', livemode: this.#isLive, created: this.#now(), url: pageOf(id) },
      total_details: { amount_tax: 0, amount_shipping: 0, amount_discount: 0 },
      ...{ status: 'open', payment_status: 'unpaid', payment_intent: null },
    }
    this.sessions.push(session)
    return session
  }

  session(id: string): StubSession {
    return known(this.sessions.find((one) => one.id === id))
  }

  /** A person pays. `later`: by a bank transfer, which takes some days. @returns the id of the payment */
  pay(id: string, how: 'now' | 'later' = 'now'): string {
    const session = this.session(id)
    if (session.status !== 'open') throw new Error(`the session ${id} is ${session.status}`)
    const payment = this.#id('pi_')
    session.status = 'complete'
    session.payment_status = how === 'now' ? 'paid' : 'unpaid'
    session.payment_intent = { id: payment, object: 'payment_intent', status: how === 'now' ? 'succeeded' : 'processing' }
    this.#happened('checkout.session.completed', session)
    return payment
  }

  /** A bank transfer arrives, or does not. */
  endTransfer(id: string, how: 'succeeded' | 'failed'): void {
    const session = this.session(id)
    if (session.payment_intent?.status !== 'processing') throw new Error(`no transfer is under way for ${id}`)
    session.payment_intent.status = how === 'succeeded' ? how : 'requires_payment_method'
    if (how === 'succeeded') session.payment_status = 'paid'
    this.#happened(`checkout.session.async_payment_${how}`, session)
  }

  expire(id: string): void {
    this.session(id).status = 'expired'
    this.#happened('checkout.session.expired', this.session(id))
  }

  refund(payment: string, amount: number): StubRefund {
    const { currency } = this.#paid(payment)
    const [id, created] = [this.#id('re_'), this.#now()]
    const refund: StubRefund = { id, object: 'refund', amount, currency, created, payment_intent: payment, status: 'succeeded' }
    this.refunds.push(refund)
    this.#happened('refund.created', refund)
    return refund
  }

  failRefund(id: string): void {
    const refund = known(this.refunds.find((one) => one.id === id))
    refund.status = 'failed'
    refund.failure_balance_transaction = { id: this.#id('txn_'), created: this.#now() }
    this.#happened('refund.failed', refund)
  }

  /** A customer disputes a payment. No money moves. */
  dispute(payment: string, amount = this.#paid(payment).amount_total): StubDispute {
    const dispute: StubDispute = {
      ...{ id: this.#id('du_'), object: 'dispute', amount, currency: this.#paid(payment).currency, created: this.#now() },
      ...{ livemode: this.#isLive, payment_intent: payment, status: 'needs_response', balance_transactions: [] },
    }
    this.disputes.push(dispute)
    this.#happened('charge.dispute.created', dispute)
    return dispute
  }

  /** The bank takes the money, or gives it again. */
  moveDispute(id: string, how: 'withdrawn' | 'reinstated'): void {
    const dispute = known(this.disputes.find((one) => one.id === id))
    const amount = how === 'withdrawn' ? -dispute.amount : dispute.amount
    dispute.balance_transactions.push({ id: this.#id('txn_'), amount, created: this.#now() })
    if (how === 'reinstated') dispute.status = 'won'
    this.#happened(`charge.dispute.funds_${how}`, dispute)
  }

  #paid(payment: string): StubSession {
    return known(this.sessions.find((one) => one.payment_intent?.id === payment))
  }

  /** The object as it is now: a later change is in later events alone. */
  #happened(type: string, object: object): void {
    const data = { object: structuredClone(object) }
    this.events.push({ id: this.#id('evt_'), object: 'event', type, created: this.#now(), livemode: this.#isLive, data })
  }

  #id(prefix: string): string {
    return `${prefix}${randomBytes(9).toString('hex')}`
  }
}

function known<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('there is no such object')
  return found
}
