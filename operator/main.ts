/** The operator on a cluster: settings, connections, election, then the operator itself. Composes; decides nothing. */
import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { processEnv } from '../gateway/shared/env.ts'
import { listenFault, Misconfigured, runProgram, type Running } from '../gateway/shared/lifecycle.ts'
import { createLog, type ProcessLog } from '../gateway/shared/log.ts'
import { OutageLog } from '../gateway/shared/outage-log.ts'
import { refuseEviction, RedisConnection } from '../gateway/shared/redis.ts'
import { createOperator, type Operator } from './app.ts'
import { sleep, systemClock as clock } from '../gateway/shared/clock.ts'
import { loadConfig, type OperatorConfig } from './config.ts'
import { createHealthServer } from './health.ts'
import { KubeEventRecorder } from './kube/events.ts'
import { InformerFactory } from './kube/informer-factory.ts'
import { KubeConfigError, KubeCredentials } from './kube/kube-credentials.ts'
import { LeaderLease } from './kube/leader.ts'
import { RawClient } from './kube/raw-client.ts'
import type { ReflectorDeps } from './kube/reflector.ts'
import { apiKeys, endpointSlices, namespaces, servedModels, services } from './kube/resources.ts'
import { Transport } from './kube/transport.ts'
import { createOperatorMetrics, figuresOf } from './metrics.ts'
import type { OperatorDeps } from './operator-deps.ts'
import { RedisProjectionStore } from './projection/redis-projection-store.ts'

/** A Redis command without an answer is given up after this long, ms. */
const REDIS_COMMAND_MS = 2_000

await runProgram('headgate-operator', start)

async function start(use: (log: ProcessLog) => void): Promise<Running> {
  const config = loadConfig(processEnv())
  const processLog = createLog('operator', config.logLevel)
  use(processLog)
  const failed = Promise.withResolvers<never>()
  const deps = connect(config, processLog, failed.reject)
  let hasStore = false
  const health = createHealthServer({
    isLive: () => !deps.watches.isDead(),
    isReady: () => deps.watches.isSynced() && hasStore,
    metrics: async () => ({ contentType: deps.figures.registry.contentType, text: await deps.figures.registry.metrics() }),
  })
  await listen(health, config.metricsPort)
  let operator: Operator | undefined
  const lead = async (): Promise<void> => {
    deps.watches.start()
    await deps.lease.acquire()
    if (!deps.lease.leading) return
    operator = createOperator(deps.operator)
    await operator.start()
  }
  lead().catch(failed.reject)
  reachStore(deps, processLog).then(() => (hasStore = true), failed.reject)
  return { failed: failed.promise, stop: () => stop(operator, deps, health) }
}

type Connected = ReturnType<typeof connect>

function connect(config: OperatorConfig, { log }: ProcessLog, fail: (reason: Error) => void) {
  const figures = createOperatorMetrics()
  const transport = new Transport({ credentials: credentials(), clock, onAnswer: figures.onAnswer })
  const kube = new RawClient({ transport, clock })
  const outage = new OutageLog('the API server', log, clock)
  const watches = createWatches(config, { source: kube, clock, logger: log, random: Math.random, metrics: figures.reflectors, outage })
  const lease = new LeaderLease({
    kube: new RawClient({ transport, clock, priority: 'urgent' }),
    clock,
    logger: log,
    random: Math.random,
    namespace: config.namespace,
    identity: `${config.podName}-${randomBytes(4).toString('hex')}`,
    times: config.leaseTimes,
    onLost: (reason) => fail(new Misconfigured(`leadership was lost: ${reason}; a standby takes over`)),
  })
  figures.leader('headgate-operator', () => lease.leading)
  const redis = new RedisConnection(config.redis, 'headgate-operator', { commandMs: REDIS_COMMAND_MS })
  const events = new KubeEventRecorder({
    kube: new RawClient({ transport, clock, priority: 'background' }),
    clock,
    logger: log,
    instance: config.podName,
  })
  const operator: OperatorDeps = {
    kube,
    informers: watches.informers,
    store: new RedisProjectionStore(redis, config.redisKeyPrefix),
    leader: {
      fence: () => lease.fence,
      raiseFence: async (stored) => {
        await lease.raiseFence(stored)
      },
      assertLeading: () => lease.assertLeading(),
      onFenced: (fence) => fail(new Misconfigured(`a newer leader (fence ${fence}) writes the projection; this operator ends`)),
    },
    events,
    clock,
    log,
    settings: { ...config, allowLoopback: false },
    metrics: figuresOf(figures, watches.informers.apiKeys),
  }
  return { figures, transport, watches, lease, redis, events, operator }
}

/** The watches: of the namespaces in scope, and for EndpointSlices of the operator's own too, where the gateways are. */
function createWatches(config: OperatorConfig, deps: ReflectorDeps) {
  const scope = new InformerFactory(deps, config.watchNamespaces)
  const withOwn = new InformerFactory(
    deps,
    config.watchNamespaces.length === 0 ? [] : [...new Set([...config.watchNamespaces, config.namespace])],
  )
  const factories = [scope, withOwn]
  const informers = {
    apiKeys: scope.createInformer(apiKeys),
    servedModels: scope.createInformer(servedModels),
    services: scope.createInformer(services),
    namespaces: scope.createInformer(namespaces),
    endpointSlices: withOwn.createInformer(endpointSlices),
  }
  let synced = false
  void Promise.all(factories.map((factory) => factory.synced())).then(() => (synced = true))
  return {
    informers,
    isSynced: () => synced,
    isDead: () => factories.some((factory) => factory.dead),
    start: () => factories.forEach((factory) => factory.start()),
    stop: () => factories.forEach((factory) => factory.stop()),
  }
}

function credentials(): KubeCredentials {
  try {
    return new KubeCredentials(processEnv().KUBECONFIG)
  } catch (error) {
    if (error instanceof KubeConfigError) throw new Misconfigured(error.message, { cause: error })
    throw error
  }
}

/**
 * Resolves when Redis has let us read for the first time. That it does not is the projection's to report while this process leads.
 * @throws Misconfigured for a Redis that evicts
 */
async function reachStore({ redis, lease, operator: { store } }: Connected, { log }: ProcessLog): Promise<void> {
  const outage = new OutageLog('Redis', log, clock)
  for (;;) {
    try {
      await redis.run(refuseEviction)
      await store.meta()
      return outage.works()
    } catch (error) {
      if (error instanceof Misconfigured) throw error
      if (!lease.leading) outage.failed(error instanceof Error ? error.message : String(error))
      await sleep(clock, REDIS_COMMAND_MS)
    }
  }
}

function listen(server: Server, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (error: NodeJS.ErrnoException) => reject(listenFault(error, 'METRICS_PORT', port)))
  server.listen(port, resolve)
  return promise
}

/** Workers first, then the Lease: whoever leads next finds nothing under way. */
async function stop(operator: Operator | undefined, deps: Connected, health: Server): Promise<void> {
  await operator?.stop()
  deps.watches.stop()
  await deps.events.flush()
  await deps.lease.release()
  deps.redis.close()
  await deps.transport.close()
  health.closeAllConnections()
  health.close()
}
