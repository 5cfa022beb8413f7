/** The program: `operator` runs an operator, `operator uninstall` releases every object. Composes parts and makes no decisions. */
import { messageOf } from '#platform/message-of.ts'
import type { Server } from 'node:http'
import { sleep, systemClock as clock } from '#platform/clock.ts'
import { processEnv } from '#platform/settings.ts'
import { Ending, listen, Misconfigured, runProgram, type Running } from '#platform/lifecycle.ts'
import { createLog, type ProcessLog } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { refuseEviction } from '#platform/redis-connection.ts'
import { Operator } from './app.ts'
import { loadConfig, type OperatorConfig } from './config.ts'
import { connect, type Connections, REDIS_COMMAND_MS } from './connect.ts'
import { createHealthServer } from './health.ts'
import { KubeUsageAccess } from './usage/usage-access.ts'
import { LedgerReader } from './usage/ledger-reader.ts'
import { UsageReader } from './usage/usage-reader.ts'
import { readCurrency } from './shards/installation.ts'
import { createUsageServer } from './usage/usage-server.ts'
import { uninstall } from './uninstall/uninstall.ts'
import { leadIfAble } from './pass-lease.ts'
import { serveUninstalls } from './uninstall/uninstall-listener.ts'

const [command] = process.argv.slice(2)
if (command === 'uninstall') process.exitCode = await uninstall(process.argv.slice(3), processEnv())
else await runProgram('headgate-operator', start)

async function start(use: (log: ProcessLog) => void): Promise<Running> {
  const env = processEnv()
  const config = loadConfig(env)
  const processLog = createLog('operator', config.logLevel)
  use(processLog)
  const failed = Promise.withResolvers<never>()
  let isUninstalled = false
  const fail = (reason: Error): void => {
    if (isUninstalled) processLog.log.info(`after the uninstall this operator only waits for its end (${reason.message})`)
    else failed.reject(reason)
  }
  const connections = connect(config, processLog.log, env.KUBECONFIG, fail)
  const { watches, lease, registry } = connections
  let hasStore = false
  let operator: Operator | undefined
  const health = createHealthServer({
    isLive: () => !watches.isDead(),
    notReadyReason: () => {
      if (!watches.isSynced()) return 'the Kubernetes API has not answered yet'
      return hasStore ? operator?.blocked : 'Redis has not answered yet' // a leader that cannot work says why; a standby is ready
    },
    metrics: async () => ({ contentType: registry.registry.contentType, text: await registry.registry.metrics() }),
  })
  await listen(health, 'METRICS_PORT', { port: config.metricsPort })
  const usage = usageServer(connections, config, processLog)
  if (config.hasAccounts) await listen(usage, 'USAGE_PORT', { port: config.usagePort })
  const lead = async (): Promise<void> => {
    watches.start()
    await leadIfAble({
      lease,
      kube: connections.kube,
      namespace: config.namespace,
      clock,
      log: processLog.log,
      retryMs: config.leaseTimes.retryMs,
    })
    if (!lease.leading) return
    operator = new Operator(connections.operator)
    const onReleased = (): void => void (isUninstalled = true)
    serveUninstalls({ lease, operator, clock, log: processLog.log, onReleased, end: (why) => failed.reject(new Ending(why)) })
    await operator.start()
  }
  lead().catch(failed.reject)
  reachStore(connections, processLog).then(() => (hasStore = true), failed.reject)
  return { failed: failed.promise, stop: () => stop(operator, connections, [health, usage]) }
}

function usageServer({ kube, redis }: Connections, { namespace, billingCurrency }: OperatorConfig, { log }: ProcessLog): Server {
  const usage = new UsageReader({ kube, namespace })
  const ledger = new LedgerReader({ kube, namespace, usage })
  return createUsageServer({
    access: new KubeUsageAccess(kube, clock),
    read: (account) => usage.read(account),
    readLedger: (account) => ledger.read(account),
    currency: () => readCurrency({ kube, namespace, currency: billingCurrency }),
    isStoreAway: () => !redis.isReady,
    clock,
    outage: new OutageLog('usage', log, clock),
  })
}

/** Resolves at the first answer of Redis. @throws Misconfigured for a Redis that evicts */
async function reachStore({ redis, lease, operator: { store } }: Connections, { log }: ProcessLog): Promise<void> {
  const outage = new OutageLog('Redis', log, clock)
  for (;;) {
    try {
      await redis.run(refuseEviction)
      await store.meta()
      return outage.works()
    } catch (error) {
      if (error instanceof Misconfigured) throw error
      if (!lease.leading) outage.failed(messageOf(error))
      await sleep(clock, REDIS_COMMAND_MS)
    }
  }
}

/** Stops the workers before it releases the Lease, so that the next leader finds no work under way. */
async function stop(operator: Operator | undefined, connections: Connections, servers: readonly Server[]): Promise<void> {
  await operator?.stop()
  connections.watches.stop()
  await connections.events.flush()
  await connections.lease.release()
  connections.redis.close()
  await connections.transport.close()
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
}
