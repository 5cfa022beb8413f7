/** Stripe as the payment provider. Translates; decides nothing. No other file imports its client. */
import { createHash } from 'node:crypto'
import Stripe from 'stripe'
import { METADATA, type DisputeFact, type Payment, type RefundFact, type SessionFact } from './payment.ts'
import { ForgedEvent, type Order, type PaymentProvider, type ProviderEvent, ProviderFailed, type Receipt } from './provider.ts'

export interface StripeSettings {
  readonly key: string
  readonly webhookSecret: string
  readonly installation: string
  readonly currency: string
  /** Origin of the dashboard, to which people come back. */
  readonly dashboardURL: string
  /** Another server than Stripe's, for tests. */
  readonly apiURL?: string | undefined
}

const TIMEOUT_MS = 10_000
const RETRIES = 2
/** Age of an event that is still taken, s. */
const TOLERANCE = 300
const MAX_PAYMENT = 1_000
/** Questions about what was taken back of one payment. */
const MAX_QUESTIONS = 5
/** Events that may move money. */
export const EVENT_TYPES = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'refund.created',
  'refund.updated',
  'refund.failed',
  'charge.dispute.funds_withdrawn',
  'charge.dispute.funds_reinstated',
  'charge.dispute.closed',
] as const

export class StripeProvider implements PaymentProvider {
  readonly #stripe: Stripe
  readonly #settings: StripeSettings

  constructor(settings: StripeSettings) {
    this.#settings = settings
    this.#stripe = new Stripe(settings.key, { timeout: TIMEOUT_MS, maxNetworkRetries: RETRIES, telemetry: false, ...serverOf(settings) })
  }

  async open({ account, amount, email, attempt }: Order): Promise<{ readonly id: string; readonly url: string }> {
    const { installation, currency, dashboardURL } = this.#settings
    const { host } = new URL(dashboardURL)
    const metadata = { [METADATA.installation]: installation, [METADATA.account]: account.name, [METADATA.uid]: account.uid }
    const { id, url } = await asked(() =>
      this.#stripe.checkout.sessions.create(
        {
          mode: 'payment',
          line_items: [
            {
              quantity: 1,
              price_data: { currency: currency.toLowerCase(), unit_amount: amount, product_data: { name: `Credit at ${host}` } },
            },
          ],
          client_reference_id: account.uid,
          customer_email: email,
          metadata,
          payment_intent_data: { metadata, description: `Credit at ${host} for ${account.name}` },
          adaptive_pricing: { enabled: false }, // the Credit is in the currency of the installation
          success_url: `${dashboardURL}/billing?top-up=paid&session={CHECKOUT_SESSION_ID}`,
          cancel_url: `${dashboardURL}/billing?top-up=cancelled`,
        },
        {
          idempotencyKey: createHash('sha256')
            .update(JSON.stringify([installation, account.uid, amount, attempt]))
            .digest('hex'),
        },
      ),
    )
    if (url === null) throw new ProviderFailed('the session has no page')
    return { id, url }
  }

  async bySession(id: string): Promise<Payment | undefined> {
    return await this.#facts(await found(() => this.#stripe.checkout.sessions.retrieve(id, { expand: ['payment_intent'] })))
  }

  async byPayment(id: string): Promise<Payment | undefined> {
    const { data } = await asked(() =>
      this.#stripe.checkout.sessions.list({ payment_intent: id, limit: 1, expand: ['data.payment_intent'] }),
    )
    return await this.#facts(data[0])
  }

  async receipt(payment: string): Promise<Receipt | undefined> {
    const intent = await found(() => this.#stripe.paymentIntents.retrieve(payment, { expand: ['latest_charge'] }))
    const charge = intent?.latest_charge
    const url = typeof charge === 'object' ? charge?.receipt_url : undefined
    return intent && url ? { url, metadata: intent.metadata } : undefined
  }

  async #facts(session: Stripe.Checkout.Session | undefined): Promise<Payment | undefined> {
    if (session?.mode !== 'payment') return undefined
    const fact = sessionFact(session)
    if (fact.state !== 'paid' || fact.payment === undefined) return { session: fact, refunds: [], disputes: [] }
    return { session: fact, ...(await this.#reversals(fact.payment)) }
  }

  /**
   * What was taken back, as it was at one moment. Refunds and disputes are two lists: a refund that comes between the two questions, and is older than a
   * dispute, would be missing. So what is not empty is asked for again, until two answers are the same.
   */
  async #reversals(payment: string): Promise<Pick<Payment, 'refunds' | 'disputes'>> {
    let last = await this.#listReversals(payment)
    if (last.refunds.length + last.disputes.length === 0) return last
    for (let question = 1; question < MAX_QUESTIONS; question += 1) {
      const next = await this.#listReversals(payment)
      if (JSON.stringify(next) === JSON.stringify(last)) return last
      last = next
    }
    throw new ProviderFailed('the refunds and disputes of a payment change too often')
  }

  async #listReversals(payment: string): Promise<Pick<Payment, 'refunds' | 'disputes'>> {
    const of = { payment_intent: payment, limit: 100 }
    const [refunds, disputes] = await asked(() =>
      Promise.all([
        this.#stripe.refunds.list({ ...of, expand: ['data.failure_balance_transaction'] }).autoPagingToArray({ limit: MAX_PAYMENT }),
        this.#stripe.disputes.list(of).autoPagingToArray({ limit: MAX_PAYMENT }),
      ]),
    )
    return { refunds: refunds.map(refundFact), disputes: disputes.map(disputeFact) }
  }

  async *events(since: number): AsyncIterable<ProviderEvent> {
    try {
      for await (const event of this.#stripe.events.list({ created: { gte: since }, types: [...EVENT_TYPES], limit: 100 }))
        yield eventOf(event)
    } catch (error) {
      throw failureOf(error)
    }
  }

  read(body: Buffer, signature: string): ProviderEvent {
    try {
      return eventOf(this.#stripe.webhooks.constructEvent(body, signature, this.#settings.webhookSecret, TOLERANCE))
    } catch (error) {
      throw new ForgedEvent('the signature is not one of the provider for this body', { cause: error })
    }
  }
}

function serverOf({ apiURL }: StripeSettings): { host?: string; port?: string; protocol?: 'http' | 'https' } {
  if (apiURL === undefined) return {}
  const { hostname, port, protocol } = new URL(apiURL)
  const isHttp = protocol === 'http:'
  return { host: hostname, port: port || (isHttp ? '80' : '443'), protocol: isHttp ? 'http' : 'https' }
}

function sessionFact(session: Stripe.Checkout.Session): SessionFact {
  const { payment_intent: intent, total_details: details } = session
  const payment = idOf(intent)
  return {
    id: session.id,
    isLive: session.livemode,
    currency: session.currency ?? '',
    total: session.amount_total ?? undefined,
    beside: (details?.amount_tax ?? 0) + (details?.amount_shipping ?? 0),
    state: stateOf(session),
    clientReference: session.client_reference_id ?? undefined,
    metadata: session.metadata ?? {},
    payment,
  }
}

function stateOf({ payment_status: paid, status, payment_intent: intent }: Stripe.Checkout.Session): SessionFact['state'] {
  if (paid === 'paid') return 'paid'
  if (status !== 'complete') return status === 'expired' ? 'expired' : 'open'
  const isOver = typeof intent === 'object' && ['requires_payment_method', 'canceled'].includes(intent?.status ?? '')
  return isOver ? 'failed' : 'processing'
}

function refundFact({ id, amount, currency, created, status, failure_balance_transaction: failure }: Stripe.Refund): RefundFact {
  const isReturned = status === 'failed' || status === 'canceled'
  const at = typeof failure === 'object' ? failure.created : created // a refund that was cancelled before the money moved has no movement
  return { id, amount, currency, created, returned: isReturned ? at : undefined }
}

/** The movements of our balance at the provider say what a bank has done; the status of a dispute does not. */
function disputeFact({ id, amount, currency, balance_transactions: moved }: Stripe.Dispute): DisputeFact {
  const [withdrawn, reinstated] = [moved.find((one) => one.amount < 0), moved.find((one) => one.amount > 0)]
  return { id, amount, currency, withdrawn: withdrawn?.created, reinstated: reinstated?.created }
}

function eventOf(event: Stripe.Event): ProviderEvent {
  const { id, type, created } = event
  return { id, type, created, about: aboutOf(event) }
}

function aboutOf({ type, data: { object } }: Stripe.Event): ProviderEvent['about'] {
  if (!EVENT_TYPES.some((one) => one === type)) return undefined
  const { id, payment_intent: intent } = object as { readonly id?: unknown; readonly payment_intent?: unknown }
  if (type.startsWith('checkout.session.')) return typeof id === 'string' ? { session: id } : undefined
  const payment = idOf(intent)
  return payment === undefined ? undefined : { payment }
}

/** Of an object, or of a field that has the id alone. */
function idOf(field: unknown): string | undefined {
  const id = typeof field === 'object' && field !== null && 'id' in field ? field.id : field
  return typeof id === 'string' ? id : undefined
}

async function found<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing') return undefined
    throw failureOf(error)
  }
}

async function asked<T>(ask: () => Promise<T>): Promise<T> {
  return await ask().catch((error: unknown) => {
    throw failureOf(error)
  })
}

/** Kind and code alone: a message may have parts of a key. */
function failureOf(error: unknown): ProviderFailed {
  if (!(error instanceof Stripe.errors.StripeError)) return new ProviderFailed('the provider could not be asked', { cause: error })
  const { type, code, statusCode, requestId } = error
  const words = [type, code, statusCode, requestId].filter((one) => one !== undefined && one !== '')
  return new ProviderFailed(`the provider answers ${words.join(' ')}`)
}
