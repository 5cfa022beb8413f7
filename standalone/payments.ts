/** The payments program of `make run`, with a stand-in for Stripe: nobody pays, and everything else is as in a cluster. */
import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { systemClock } from '#platform/clock.ts'
import { listen } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'
import { createPayments } from '../dashboard/payments/payments.ts'
import { EventSender } from '../examples/stub-stripe/event-sender.ts'
import { StubStripe } from '../examples/stub-stripe/stub-stripe.ts'
import type { ObjectStore } from './object-store.ts'

export interface LocalPaymentsDeps {
  readonly store: ObjectStore
  readonly dashboardURL: string
  readonly currency: string
  readonly log: Log
}

export interface LocalPayments {
  /** Base URL for the dashboard. */
  readonly url: string
  readonly token: string
  stop(): Promise<void>
}

const LOOPBACK = '127.0.0.1'
const SECRET_BYTES = 24
/** The stand-in loses events on purpose; a person at a terminal does not wait ten minutes for the sweep. */
const SWEEP_MS = 5_000

export async function startLocalPayments({ store, dashboardURL, currency, log }: LocalPaymentsDeps): Promise<LocalPayments> {
  await using parts = new AsyncDisposableStack()
  const secret = (): string => randomBytes(SECRET_BYTES).toString('hex')
  const [key, webhookSecret, token] = [`sk_test_${secret()}`, `whsec_${secret()}`, secret()]
  const start = async (server: Server): Promise<string> => {
    parts.defer(() => {
      server.close()
      server.closeAllConnections()
    })
    return `http://${LOOPBACK}:${await listen(server, 'PORT', { port: 0, host: LOOPBACK })}`
  }
  const stripe = new StubStripe({ key, webhookSecret, onEvents: (events) => events.forEach((event) => sender.send(event)) })
  stripe.url = await start(stripe.server)
  const payments = createPayments({
    stripe: { key, webhookSecret, installation: 'make run', currency, dashboardURL, apiURL: stripe.url },
    ...{ isLive: false, token, kube: store, clock: systemClock, log, sweepMs: SWEEP_MS },
    metrics: { event: () => undefined, alarm: () => undefined, swept: () => undefined },
  })
  const webhooks = await start(payments.webhooks)
  const sender = new EventSender({ stripe, url: `${webhooks}/webhooks/stripe`, after: (ms, send) => void systemClock.after(ms, send) })
  const url = await start(payments.checkout)
  const stopping = new AbortController()
  const sweeping = payments.sweep.runUntil(stopping.signal)
  parts.defer(async () => {
    stopping.abort()
    await sweeping
  })
  const running = parts.move()
  return { url, token, stop: () => running.disposeAsync() }
}
