/** The payments program: reads the settings, and listens for the provider and for the dashboard. It only composes parts. */
import type { Server } from 'node:http'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { RawClient } from '#kube/raw-client.ts'
import { Transport } from '#kube/transport.ts'
import { systemClock as clock } from '#platform/clock.ts'
import { listen, runProgram, type Running } from '#platform/lifecycle.ts'
import { createLog, type ProcessLog } from '#platform/log.ts'
import { processEnv } from '#platform/settings.ts'
import { loadConfig } from './config.ts'
import { createHealthServer } from './health.ts'
import { createPaymentsMetrics } from './metrics.ts'
import { createPayments } from './payments.ts'

/** Longest wait for answers under way at the end, ms. */
const DRAIN_MS = 10_000

await runProgram('headgate-payments', start)

async function start(use: (log: ProcessLog) => void): Promise<Running> {
  const env = processEnv()
  const config = loadConfig(env)
  const processLog = createLog('payments', config.logLevel)
  use(processLog)
  const { log } = processLog
  const transport = new Transport({ credentials: new KubeCredentials(env.KUBECONFIG), clock })
  const metrics = createPaymentsMetrics()
  const { installation, billingCurrency: currency, dashboardURL, stripeSecretKey: key, stripeWebhookSecret: webhookSecret } = config
  const payments = createPayments({
    stripe: { key, webhookSecret, installation, currency, dashboardURL, apiURL: config.stripeURL },
    isLive: config.isLive,
    token: config.paymentsToken,
    kube: new RawClient({ transport, clock }),
    clock,
    log,
    metrics,
  })
  const health = createHealthServer(metrics.registry)
  await listen(health, 'METRICS_PORT', { port: config.metricsPort })
  await listen(payments.checkout, 'CHECKOUT_PORT', { port: config.checkoutPort })
  const port = await listen(payments.webhooks, 'PORT', { port: config.port })
  const stopping = new AbortController()
  const sweeping = payments.sweep.runUntil(stopping.signal)
  log.info({ port, installation, isLive: config.isLive }, 'listening')
  const stop = async (): Promise<void> => {
    stopping.abort()
    await Promise.all([closed(payments.webhooks), closed(payments.checkout), sweeping])
    await transport.close()
    health.close()
    health.closeAllConnections()
  }
  return { stop, failed: new Promise<never>(() => undefined) }
}

/** Answers under way end first. */
async function closed(server: Server): Promise<void> {
  const ended = new Promise((resolve) => server.close(resolve))
  server.closeIdleConnections()
  clock.after(DRAIN_MS, () => server.closeAllConnections())
  await ended
}
