/** The payments program over a stand-in for Stripe and the object store, for one test. */
import { onTestFinished } from 'vitest'
import { credits } from '#api/resources.ts'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import { createLog } from '#platform/log.ts'
import { createPayments, type Payments } from '../../dashboard/payments/payments.ts'
import type { StubEvent } from '../../examples/stub-stripe/state.ts'
import { StubStripe } from '../../examples/stub-stripe/stub-stripe.ts'
import { FakeKubePort } from './fake-kube-port.ts'
import { listening } from './listening.ts'
import { ManualClock } from './manual-clock.ts'

const KEY = 'sk_test_of_the_tests'
const WEBHOOK_SECRET = 'whsec_of_the_tests_0123456789'
export const TOKEN = 'a token of the tests that is long enough'
export const ACCOUNT = { name: 'u-1', uid: 'uid-1' }
export const INSTALLATION = 'dashboard.example.net'

export class PaymentsWorld {
  readonly stripe = new StubStripe({ key: KEY, webhookSecret: WEBHOOK_SECRET })
  readonly kube = new FakeKubePort()
  readonly clock = new ManualClock(Date.now())
  readonly lines: string[] = []
  readonly outcomes: string[] = []
  readonly sweeps: boolean[] = []
  alarms = 0
  payments: Payments | undefined
  webhookURL = ''
  checkoutURL = ''

  static async open({ currency = 'EUR', isLive = false } = {}): Promise<PaymentsWorld> {
    const world = new PaymentsWorld()
    const { stripe, kube, clock, lines } = world
    stripe.url = `http://127.0.0.1:${await listening(stripe.server)}`
    const payments = createPayments({
      stripe: {
        ...{ key: KEY, webhookSecret: WEBHOOK_SECRET, installation: INSTALLATION, currency },
        ...{ dashboardURL: 'https://dashboard.example.net', apiURL: stripe.url },
      },
      ...{ isLive, token: TOKEN, kube, clock },
      log: createLog('payments', 'debug', { write: (line) => void lines.push(line) }).log,
      metrics: {
        event: (type, outcome) => void world.outcomes.push(`${type} ${outcome}`),
        alarm: () => void (world.alarms += 1),
        swept: (isWhole) => void world.sweeps.push(isWhole),
      },
    })
    world.payments = payments
    world.webhookURL = `http://127.0.0.1:${await listening(payments.webhooks)}/webhooks/stripe`
    world.checkoutURL = `http://127.0.0.1:${await listening(payments.checkout)}`
    onTestFinished(() => {
      for (const server of [stripe.server, payments.webhooks, payments.checkout]) {
        server.close()
        server.closeAllConnections()
      }
    })
    return world
  }

  async ask(path: string, body: unknown, token = TOKEN): Promise<{ status: number; body: Record<string, string> }> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`${this.checkoutURL}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Record<string, string> }
  }

  /** @returns the id of the session */
  async session(amount = '50.00', attempt = 'attempt-1', account = ACCOUNT): Promise<string> {
    const { status, body } = await this.ask('/checkout', { account, amount, email: 'maya@x.example', attempt })
    if (status !== 200) throw new Error(`the answer is ${status}`)
    return body['url']?.split('/').at(-1) ?? ''
  }

  async send(body: string, signature: string | undefined): Promise<number> {
    const headers = { 'content-type': 'application/json', ...(signature === undefined ? {} : { 'stripe-signature': signature }) }
    return (await fetch(this.webhookURL, { method: 'POST', headers, body })).status
  }

  async deliver(event: StubEvent | undefined = this.stripe.state.events.at(-1)): Promise<number> {
    if (event === undefined) throw new Error('nothing has happened')
    const { body, signature } = this.stripe.signed(event)
    return await this.send(body, signature)
  }

  async sweep(): Promise<void> {
    await this.payments?.sweep.once()
  }

  /** `TopUp 50 pi_1` by creation. */
  async credits(): Promise<readonly string[]> {
    return (await this.kube.store.list(credits, '')).map(({ spec }) => `${spec.type} ${spec.amount} ${spec.reference}`)
  }

  async sum(): Promise<number> {
    return (await this.kube.store.list(credits, '')).reduce((sum, { spec }) => sum + (parseSignedAmount(spec.amount) ?? NaN), 0) / 1_000_000
  }
}
