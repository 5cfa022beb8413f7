/** Composes the payments program of its parts, for the program and for `make run`. Makes no decisions. */
import type { Server } from 'node:http'
import type { KubePort } from '#kube/port.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { CreditBook } from './credit-book.ts'
import type { PaymentsMetrics } from './metrics.ts'
import { createCheckoutServer, createWebhookServer } from './server.ts'
import { Settlement } from './settlement.ts'
import { StripeProvider, type StripeSettings } from './stripe-provider.ts'
import { Sweep } from './sweep.ts'

export interface PaymentsDeps {
  readonly stripe: StripeSettings
  readonly isLive: boolean
  /** That the dashboard sends. */
  readonly token: string
  readonly kube: Pick<KubePort, 'create' | 'get'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<PaymentsMetrics, 'event' | 'alarm' | 'swept'>
  /** Pause between two sweeps, ms. */
  readonly sweepMs?: number
}

export interface Payments {
  /** For the provider. */
  readonly webhooks: Server
  /** For the dashboard. */
  readonly checkout: Server
  readonly sweep: Sweep
}

export function createPayments({ stripe, isLive, token, kube, clock, log, metrics, sweepMs: everyMs }: PaymentsDeps): Payments {
  const { installation, currency } = stripe
  const provider = new StripeProvider(stripe)
  const expected = { installation, currency, isLive }
  const settlement = new Settlement({ provider, book: new CreditBook(kube), expected, log, onAlarm: metrics.alarm })
  const deps = { provider, settlement, installation, currency, token, log, onEvent: metrics.event }
  return {
    webhooks: createWebhookServer(deps),
    checkout: createCheckoutServer(deps),
    sweep: new Sweep({ provider, settlement, clock, log, everyMs, onSwept: metrics.swept }),
  }
}
