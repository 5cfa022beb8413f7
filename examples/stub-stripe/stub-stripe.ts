/** A stand-in for Stripe, for trials and tests: the part of its API that takes payments, its signed events, and a page to pay. README.md says more. */
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { payPage, type PayPage } from './pay-page.ts'
import { StubState, type StubEvent, type StubSession } from './state.ts'

export interface StubStripeOptions {
  readonly key: string
  readonly webhookSecret: string
  /** s since 1970 */
  readonly now?: () => number
  /** After each act on a page. */
  readonly onEvents?: (events: readonly StubEvent[]) => void
}

interface Answer {
  readonly status: number
  readonly body?: unknown
  readonly html?: string
  readonly location?: string
}

export class StubStripe {
  readonly state: StubState
  readonly server: Server
  /** Answers 500 to so many requests of the API. */
  failures = 0
  /** Requests of the API: `POST /v1/checkout/sessions`. */
  readonly asked: string[] = []
  url = ''
  readonly #options: StubStripeOptions
  /** Answers by Idempotency-Key. */
  readonly #answers = new Map<string, StubSession>()

  constructor(options: StubStripeOptions) {
    this.#options = options
    this.state = new StubState(/^.._live_/.test(options.key), this.#now)
    this.server = createServer((request, response) => {
      this.#answer(request).then(
        (answer) => send(response, answer),
        (error: unknown) => send(response, refusal(400, String(error))),
      )
    })
  }

  readonly #now = (): number => this.#options.now?.() ?? Math.floor(Date.now() / 1_000)

  /** An event as Stripe sends it. @param at when it was signed, s since 1970 */
  signed(
    event: StubEvent,
    { secret = this.#options.webhookSecret, at = this.#now() } = {},
  ): { readonly body: string; readonly signature: string } {
    const body = JSON.stringify(event)
    const signature = createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')
    return { body, signature: `t=${at},v1=${signature}` }
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://stripe')
    const form = new URLSearchParams(await text(request))
    if (!pathname.startsWith('/v1/')) return this.#page(request.method ?? '', pathname, form)
    this.asked.push(`${request.method} ${pathname}`)
    if (this.failures > 0) {
      this.failures -= 1
      return refusal(500, 'try again')
    }
    if (request.headers.authorization !== `Bearer ${this.#options.key}`) return refusal(401, 'no such key')
    if (request.method === 'POST' && pathname === '/v1/checkout/sessions')
      return { status: 200, body: this.#open(form, String(request.headers['idempotency-key'] ?? '')) }
    return request.method === 'GET' ? this.#read(pathname, searchParams) : refusal(404, 'unknown')
  }

  #open(form: URLSearchParams, idempotencyKey: string): StubSession {
    const before = this.#answers.get(idempotencyKey)
    if (before !== undefined) return before
    const metadata = [...form].flatMap(([name, value]) => {
      const field = /^metadata\[(.*)\]$/.exec(name)?.[1]
      return field === undefined ? [] : [[field, value] as const]
    })
    const price = 'line_items[0][price_data]'
    const order = {
      currency: form.get(`${price}[currency]`) ?? '',
      amount_total: Number(form.get(`${price}[unit_amount]`)),
      client_reference_id: form.get('client_reference_id'),
      metadata: Object.fromEntries(metadata),
      success_url: form.get('success_url') ?? '',
      cancel_url: form.get('cancel_url') ?? '',
    }
    const session = this.state.open(order, (id) => `${this.url}/pay/${id}`)
    if (idempotencyKey !== '') this.#answers.set(idempotencyKey, session)
    return session
  }

  #read(pathname: string, query: URLSearchParams): Answer {
    const [, kind = '', id] = /^\/v1\/(checkout\/sessions|refunds|disputes|events)(?:\/(\w+))?$/.exec(pathname) ?? []
    const { sessions, refunds, disputes, events } = this.state
    if (id !== undefined && kind === 'checkout/sessions') {
      const session = sessions.find((one) => one.id === id)
      return session ? { status: 200, body: session } : refusal(404, 'resource_missing')
    }
    const payment = query.get('payment_intent') ?? ''
    const [, intent] = /^\/v1\/payment_intents\/(\w+)$/.exec(pathname) ?? []
    if (intent !== undefined) return this.#intent(intent)
    const lists: Readonly<Record<string, readonly { readonly id: string }[]>> = {
      'checkout/sessions': sessions.filter((one) => one.payment_intent?.id === payment),
      refunds: refunds.filter((one) => one.payment_intent === payment),
      disputes: disputes.filter((one) => one.payment_intent === payment),
      events: events.filter((one) => isAsked(one, query)),
    }
    const list = lists[kind]
    return list ? listOf(list, query) : refusal(404, 'unknown')
  }

  #intent(id: string): Answer {
    const session = this.state.sessions.find((one) => one.payment_intent?.id === id)
    if (session === undefined) return refusal(404, 'resource_missing')
    const receipt = session.payment_status === 'paid' ? `${this.url}/receipts/${id}` : null
    const charge = { id: id.replace('pi_', 'ch_'), object: 'charge', receipt_url: receipt }
    return { status: 200, body: { ...session.payment_intent, metadata: session.metadata, latest_charge: charge } }
  }

  /** The page where a person pays, and where a trial refunds and disputes. */
  #page(method: string, pathname: string, form: URLSearchParams): Answer {
    const [, paid] = /^\/receipts\/(\w+)$/.exec(pathname) ?? []
    if (paid !== undefined) return { status: 200, html: `<!doctype html><title>Receipt</title><h1>Receipt of ${paid}</h1>` }
    const [, id = ''] = /^\/pay\/(\w+)$/.exec(pathname) ?? []
    const session = this.state.sessions.find((one) => one.id === id)
    if (session === undefined) return { status: 404, html: '<!doctype html><title>Not found</title>' }
    if (method !== 'POST') return { status: 200, html: payPage(this.#pageOf(session)) }
    const before = this.state.events.length
    const location = this.#act(session, form.get('act') ?? '')
    this.#options.onEvents?.(this.state.events.slice(before))
    return { status: 303, location }
  }

  #pageOf(session: StubSession): PayPage {
    const payment = session.payment_intent?.id
    return {
      session,
      refunds: this.state.refunds.filter((one) => one.payment_intent === payment),
      disputes: this.state.disputes.filter((one) => one.payment_intent === payment),
    }
  }

  /** @returns where the browser goes on */
  #act(session: StubSession, act: string): string {
    const { state } = this
    const { id, amount_total: amount } = session
    const [last] = this.#pageOf(session).disputes.slice(-1)
    const payment = session.payment_intent?.id ?? ''
    const back = session.success_url.replace('{CHECKOUT_SESSION_ID}', id)
    const acts: Readonly<Record<string, () => unknown>> = {
      pay: () => state.pay(id),
      'pay-later': () => state.pay(id, 'later'),
      arrive: () => state.endTransfer(id, 'succeeded'),
      fail: () => state.endTransfer(id, 'failed'),
      refund: () => state.refund(payment, amount),
      'refund-half': () => state.refund(payment, Math.floor(amount / 2)),
      dispute: () => state.moveDispute(state.dispute(payment).id, 'withdrawn'),
      'win-dispute': () => last && state.moveDispute(last.id, 'reinstated'),
    }
    acts[act]?.()
    const places: Readonly<Record<string, string>> = { pay: back, 'pay-later': back, cancel: session.cancel_url }
    return places[act] ?? `/pay/${id}`
  }
}

function isAsked(event: StubEvent, query: URLSearchParams): boolean {
  const types = [...query].filter(([name]) => name.startsWith('types[')).map(([, type]) => type)
  return event.created >= Number(query.get('created[gte]') ?? 0) && (types.length === 0 || types.includes(event.type))
}

/** A page of a list, newest first. */
function listOf(all: readonly { readonly id: string }[], query: URLSearchParams): Answer {
  const newest = all.toReversed()
  const after = newest.findIndex(({ id }) => id === query.get('starting_after')) + 1
  const limit = Number(query.get('limit') ?? 10)
  const data = newest.slice(after, after + limit)
  return { status: 200, body: { object: 'list', data, has_more: newest.length > after + limit, url: '/v1/list' } }
}

function refusal(status: number, code: string): Answer {
  return { status, body: { error: { type: status === 401 ? 'authentication_error' : 'invalid_request_error', code, message: code } } }
}

function send(response: ServerResponse, { status, body, html, location }: Answer): void {
  if (location !== undefined) response.setHeader('location', location)
  response.setHeader('content-type', html === undefined ? 'application/json' : 'text/html; charset=utf-8')
  response.writeHead(status).end(html ?? JSON.stringify(body ?? {}))
}
