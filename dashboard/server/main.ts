/** The dashboard program: reads the settings, connects to the Kubernetes API and the database, and listens on two ports. It only composes parts. */
import { createServer } from 'node:http'
import { join } from 'node:path'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { RawClient } from '#kube/raw-client.ts'
import { Transport } from '#kube/transport.ts'
import { systemClock as clock } from '#platform/clock.ts'
import { listen, runProgram, type Running } from '#platform/lifecycle.ts'
import { createLog, type Log, type ProcessLog } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { processEnv } from '#platform/settings.ts'
import { ClusterOutage } from './accounts/cluster-outage.ts'
import { loadConfig } from './config.ts'
import { runCopyCommand } from './copy-command.ts'
import { createDashboard } from './dashboard.ts'
import { lowerHashPriority } from './hash-priority.ts'
import { createHealthServer } from './health.ts'
import { smtpTransport } from './mail/transport.ts'
import { createDashboardMetrics, type DashboardMetrics } from './metrics.ts'
import { readWebFiles } from './web-files.ts'

/** Longest wait for answers under way at the end, ms. */
const DRAIN_MS = 10_000
/** People who arrive at the same moment: beyond this number, the system drops a connection, and the browser tries again after a second or more. */
const BACKLOG = 4_096

const [command] = process.argv.slice(2)
if (command === 'copy-database') process.exitCode = await runCopyCommand(processEnv())
else {
  await lowerHashPriority()
  await runProgram('headgate-dashboard', start)
}

async function start(use: (log: ProcessLog) => void): Promise<Running> {
  const env = processEnv()
  const config = loadConfig(env)
  const processLog = createLog('dashboard', config.logLevel)
  use(processLog)
  const { log } = processLog
  // better-auth prints unexpected errors there, whatever its options
  // eslint-disable-next-line no-console -- the reason is above
  console.error = (...parts: unknown[]) => log.error({ error: parts.map(messageOf).join(' ') }, 'a library printed an error')
  const metrics = createDashboardMetrics()
  const cluster = openCluster(env.KUBECONFIG, config.keysNamespace, { metrics, log })
  const { kube, caches, outage } = cluster
  const dashboard = await createDashboard({
    kube,
    caches,
    outage,
    auth: config.auth,
    database: config.database,
    newAccounts: { defaultPlan: config.defaultPlan, billing: config.accountBilling, keysNamespace: config.keysNamespace },
    money: {
      url: config.usageURL,
      tokenFile: config.usageTokenFile,
      currency: config.billingCurrency,
      lowBalance: config.billingLowBalance,
      payments: config.payments,
    },
    apiURL: config.publicURL,
    web: readWebFiles(join(import.meta.dirname, 'web')),
    transport: smtpTransport(config.smtp, { from: config.from, site: { name: 'Headgate', url: config.auth.origin } }),
    trustedProxies: config.trustedProxies,
    metrics,
    clock,
    log,
  })
  const health = createHealthServer({
    isDead: cluster.isDead,
    ping: () => dashboard.identity.ping(),
    registry: metrics.registry,
  })
  const server = createServer(dashboard.app)
  await listen(health, 'METRICS_PORT', { port: config.metricsPort })
  cluster.start()
  dashboard.start()
  log.info({ port: await listen(server, 'PORT', { port: config.port, backlog: BACKLOG }), url: config.auth.origin }, 'listening')
  const stop = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeIdleConnections()
    clock.after(DRAIN_MS, () => server.closeAllConnections())
    await closed
    await dashboard.stop()
    await cluster.close()
    health.close()
    health.closeAllConnections()
  }
  return { stop, failed: new Promise<never>(() => undefined) }
}

/** The API server as the dashboard sees it. */
function openCluster(
  kubeconfig: string | undefined,
  keysNamespace: string,
  { metrics, log }: { readonly metrics: DashboardMetrics; readonly log: Log },
) {
  const transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock, onAnswer: metrics.kubeAnswered })
  const kube = new RawClient({ transport, clock })
  const outage = new ClusterOutage(new OutageLog('the API server', log, clock), clock)
  const source = { source: kube, clock, logger: log, random: Math.random, outage }
  const everywhere = new InformerFactory(source, [])
  const ofKeys = new InformerFactory(source, [keysNamespace])
  const factories = [everywhere, ofKeys]
  return {
    kube,
    outage,
    caches: {
      accounts: everywhere.createInformer(accounts),
      apiKeys: ofKeys.createInformer(apiKeys),
      plans: everywhere.createInformer(plans),
      models: everywhere.createInformer(servedModels),
      credits: everywhere.createInformer(credits),
    },
    isDead: () => factories.some(({ dead }) => dead),
    start: () => factories.forEach((factory) => factory.start()),
    close: async (): Promise<void> => {
      for (const factory of factories) factory.stop()
      await transport.close()
    },
  }
}
