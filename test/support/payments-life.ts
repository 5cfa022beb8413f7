/**
 * The payments program in one process of a test, over a stand-in for Stripe and the object store. It is killed at a chosen call to either, and started
 * again. Its parts speak HTTP, as in a cluster.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { credits } from '#api/resources.ts'
import type { Credit } from '#api/credit.ts'
import { KubeError } from '#kube/port.ts'
import { createLog } from '#platform/log.ts'
import { createPayments, type Payments } from '../../dashboard/payments/payments.ts'
import type { StubEvent } from '../../examples/stub-stripe/state.ts'
import { StubStripe } from '../../examples/stub-stripe/stub-stripe.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { PortAround } from './fake-kube-port.ts'
import { listening } from './listening.ts'
import { ManualClock } from './manual-clock.ts'

const KEY = 'sk_test_of_the_tests'
const WEBHOOK_SECRET = 'whsec_of_the_tests_0123456789'
const TOKEN = 'a token of the tests that is long enough'

/** At the n-th call from now, counted from 0: before it has an effect, or after that and before its answer. `fail`: it fails, and nobody dies. */
export interface Fault {
  readonly call: number
  readonly what: 'kill before' | 'kill after' | 'fail before' | 'fail after'
}

/** One life of the program, from start to kill. */
interface Life {
  isDead: boolean
  readonly death: PromiseWithResolvers<void>
  readonly payments: Payments
  readonly servers: readonly Server[]
  readonly webhookURL: string
  readonly checkoutURL: string
}

export class PaymentsLife implements Disposable {
  readonly clock = new ManualClock(Date.now())
  readonly stripe = new StubStripe({ key: KEY, webhookSecret: WEBHOOK_SECRET, now: () => Math.floor(this.clock.now() / 1_000) })
  readonly store = new ObjectStore()
  readonly alarms: string[] = []
  kills = 0
  #life: Life | undefined
  #fault: Fault | undefined
  #calls = 0

  /** From the next call on. */
  arm(fault: Fault | undefined): void {
    this.#fault = fault
    this.#calls = 0
  }

  async start(): Promise<void> {
    const mortal = { isDead: false, death: Promise.withResolvers<void>() }
    const provider = createServer((request, response) => this.#answerAsProvider(mortal, request, response))
    const payments = createPayments({
      stripe: {
        ...{ key: KEY, webhookSecret: WEBHOOK_SECRET, installation: 'dashboard.example.net', currency: 'EUR' },
        ...{ dashboardURL: 'https://dashboard.example.net', apiURL: `http://127.0.0.1:${await listening(provider)}` },
      },
      ...{ isLive: false, token: TOKEN, clock: this.clock },
      kube: this.#kubeOf(mortal),
      log: createLog('payments', 'error', { write: (line) => void (line.includes('payment.alarm') && this.alarms.push(line)) }).log,
      metrics: { event: () => undefined, alarm: () => undefined, swept: () => undefined },
    })
    const webhookURL = `http://127.0.0.1:${await listening(payments.webhooks)}/webhooks/stripe`
    const checkoutURL = `http://127.0.0.1:${await listening(payments.checkout)}`
    const servers = [provider, payments.webhooks, payments.checkout]
    this.#life = Object.assign(mortal, { payments, servers, webhookURL, checkoutURL })
  }

  /** As kill -9 does: connections break, and no call has a further effect. */
  kill(): void {
    const life = this.#life
    if (life === undefined || life.isDead) return
    life.isDead = true
    life.death.resolve()
    this.kills += 1
    for (const server of life.servers) {
      server.close()
      server.closeAllConnections()
    }
  }

  [Symbol.dispose](): void {
    this.kill()
  }

  get isDead(): boolean {
    return this.#life?.isDead ?? true
  }

  /** @returns the status of the answer; 0 without one */
  async deliver(event: StubEvent, more: { readonly secret?: string; readonly body?: (body: string) => string } = {}): Promise<number> {
    const { body, signature } = this.stripe.signed(event, {
      at: Math.floor(Date.now() / 1_000),
      ...(more.secret === undefined ? {} : { secret: more.secret }),
    })
    const headers = { 'content-type': 'application/json', 'stripe-signature': signature }
    return await this.#post(this.#life?.webhookURL ?? '', headers, more.body?.(body) ?? body).then(
      ({ status }) => status,
      () => 0,
    )
  }

  /** The page to which a person comes back. @returns undefined without an answer */
  async comeBack(session: string, account: { readonly name: string; readonly uid: string }): Promise<string | undefined> {
    const answer = await this.#ask('/top-up', { account, session }).catch(() => undefined)
    return answer?.['state']
  }

  /** @returns the id of the session; undefined without an answer */
  async open(account: { readonly name: string; readonly uid: string }, amount: string, attempt: string): Promise<string | undefined> {
    const answer = await this.#ask('/checkout', { account, amount, email: 'maya@x.example', attempt }).catch(() => undefined)
    return answer?.['url']?.split('/').at(-1)
  }

  /** A sweep of a program that is killed never ends. */
  async sweep(): Promise<void> {
    const life = this.#life
    if (life === undefined || life.isDead) return
    await Promise.race([life.payments.sweep.once(), life.death.promise])
  }

  async credits(): Promise<readonly Credit[]> {
    return await this.store.list(credits, '')
  }

  async #ask(path: string, body: object): Promise<Record<string, string>> {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const response = await this.#post(`${this.#life?.checkoutURL}${path}`, headers, JSON.stringify(body))
    return response.status === 200 ? ((await response.json()) as Record<string, string>) : {}
  }

  async #post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Response> {
    return await fetch(url, { method: 'POST', headers, body })
  }

  #verdict(): Fault['what'] | undefined {
    const fault = this.#fault
    if (fault === undefined || fault.call !== this.#calls++) return undefined
    this.#fault = undefined
    return fault.what
  }

  #kubeOf(life: { readonly isDead: boolean }): PortAround {
    const never = <R>(): Promise<R> => new Promise(() => undefined)
    return new PortAround(this.store, async (_, run) => {
      if (life.isDead) return await never()
      const verdict = this.#verdict()
      if (verdict === 'fail before') throw new KubeError('Unreachable', 0, 'the API server does not answer')
      if (verdict === 'kill before') this.kill()
      if (life.isDead) return await never()
      const answer = await run()
      if (verdict === 'fail after') throw new KubeError('Unreachable', 0, 'the answer was lost')
      if (verdict === 'kill after') this.kill()
      return life.isDead ? await never() : answer
    })
  }

  #answerAsProvider(life: { readonly isDead: boolean }, request: IncomingMessage, response: ServerResponse): void {
    const verdict = life.isDead ? 'kill before' : this.#verdict()
    if (verdict === 'kill before') return this.kill()
    if (verdict === 'fail before') return void response.writeHead(500, { 'stripe-should-retry': 'false' }).end('{"error":{}}')
    if (verdict === 'kill after') response.once('finish', () => this.kill())
    this.stripe.server.emit('request', request, response)
  }
}
