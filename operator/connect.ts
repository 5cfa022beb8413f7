/** Opens the connections of an operator on a cluster: API server, Lease, Redis, Events. Makes no decisions. */
import { randomBytes } from 'node:crypto'
import { systemClock as clock } from '#platform/clock.ts'
import { Ending } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { RedisConnection } from '#platform/redis-connection.ts'
import { apiKeys } from '#api/resources.ts'
import type { OperatorConfig } from './config.ts'
import { KINDS } from './kinds/kinds.ts'
import { KubeEventRecorder } from '#kube/events.ts'
import { emptyInformer } from '#kube/empty-informer.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { LeaderLease } from '#kube/leader.ts'
import { RedisBalanceStore } from './books/redis-balance-store.ts'
import { RedisLedgerAdmin } from './books/redis-ledger-store.ts'
import { RedisUsageTaker } from './usage/usage-store.ts'
import type { Informer, KubeObject, Resource } from '#kube/port.ts'
import { RawClient } from '#kube/raw-client.ts'
import type { ReflectorDeps } from '#kube/reflector.ts'
import { endpointSlices, namespaces, services } from '#kube/resources.ts'
import { Transport } from '#kube/transport.ts'
import { createMetricsRegistry } from './metrics.ts'
import type { OperatorDeps } from './operator-deps.ts'
import { OwnRedis } from './projection/redis-owner.ts'
import { RedisProjectionStore } from './projection/redis-projection-store.ts'

/** Time-out of a Redis command, ms. */
export const REDIS_COMMAND_MS = 2_000

export type Connections = ReturnType<typeof connect>

/** @param kubeconfig path of a kubeconfig; undefined: the pod's ServiceAccount @param fail ends the process */
export function connect(config: OperatorConfig, log: Log, kubeconfig: string | undefined, fail: (reason: Error) => void) {
  const registry = createMetricsRegistry()
  const transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock, onAnswer: registry.onAnswer })
  const kube = new RawClient({ transport, clock })
  const outage = new OutageLog('the API server', log, clock)
  const watches = createWatches(config, { source: kube, clock, logger: log, random: Math.random, metrics: registry.reflectors, outage })
  const lease = new LeaderLease({
    kube: new RawClient({ transport, clock, isDedicated: true }),
    clock,
    logger: log,
    random: Math.random,
    namespace: config.namespace,
    identity: `${config.podName}-${randomBytes(4).toString('hex')}`,
    times: config.leaseTimes,
    onLost: (reason) => fail(new Ending(`leadership was lost: ${reason}; a standby takes over`)),
  })
  registry.leader('headgate-operator', () => lease.leading)
  const redis = new RedisConnection(config.redis, 'headgate-operator', { commandMs: REDIS_COMMAND_MS })
  const { redisKeyPrefix: keyPrefix, redisTakeOver: takesOver } = config
  const own = new OwnRedis({ redis, keyPrefix, clock, takesOver })
  const metrics = registry.operator(watches.informers.of(apiKeys))
  const isTerminating = (name: string): boolean =>
    watches.informers.namespaces?.get({ namespace: '', name })?.metadata.deletionTimestamp !== undefined
  const events = new KubeEventRecorder({
    kube,
    clock,
    logger: log,
    instance: config.podName,
    isTerminating,
    onDropped: () => metrics.eventDropped(),
  })
  const operator: OperatorDeps = {
    kube,
    informers: watches.informers,
    store: new RedisProjectionStore(redis, keyPrefix, own),
    ledger: new RedisLedgerAdmin(own, keyPrefix),
    balanceStore: new RedisBalanceStore(own, keyPrefix),
    usageStore: new RedisUsageTaker(own, keyPrefix),
    onInstallation: (id) => own.belongsTo(id),
    leader: {
      fence: () => lease.fence,
      raiseFence: async (stored) => {
        await lease.raiseFence(stored)
      },
      assertLeading: () => lease.assertLeading(),
      onFenced: (fence) => fail(new Ending(`a newer leader (fence ${fence}) writes the projection; this operator ends`)),
    },
    events,
    clock,
    random: Math.random,
    log,
    settings: { ...config, allowLoopback: false },
    metrics,
  }
  return { registry, transport, kube, watches, lease, redis, own, events, operator }
}

/** The watches: of the namespaces in scope, and for EndpointSlices of the operator's own too, where the gateways are. */
function createWatches(config: OperatorConfig, deps: ReflectorDeps) {
  const isClusterWide = config.watchNamespaces.length === 0
  const scope = new InformerFactory(deps, config.watchNamespaces)
  const withOwn = new InformerFactory(deps, isClusterWide ? [] : [...new Set([...config.watchNamespaces, config.namespace])])
  const factories = [scope, withOwn]
  const watchesKind = ({ namespaced }: Resource): boolean => namespaced || config.hasAccounts
  const ofKinds = new Map<string, Informer>(
    KINDS.map(({ api: { resource } }) => [resource.plural, watchesKind(resource) ? scope.createInformer(resource) : emptyInformer()]),
  )
  const informers = {
    of: <T extends KubeObject>({ plural }: Resource<T>): Informer<T> => {
      const informer = ofKinds.get(plural)
      if (!informer) throw new TypeError(`nothing watches ${plural}`)
      return informer as Informer<T> // made from the resource of this plural
    },
    services: scope.createInformer(services),
    namespaces: config.readsNamespaces ? scope.createInformer(namespaces, { mayBeRefused: true }) : undefined,
    endpointSlices: withOwn.createInformer(endpointSlices),
  }
  let isSynced = false
  void Promise.all(factories.map((factory) => factory.synced())).then(() => (isSynced = true))
  const watched = isClusterWide ? [''] : config.watchNamespaces
  return {
    informers,
    /** A namespace whose Role is missing delays no other namespace. Without any namespace the operator cannot work. */
    isSynced: () => isSynced && watched.some((namespace) => informers.of(apiKeys).isSynced(namespace)),
    isDead: () => factories.some((factory) => factory.dead),
    start: () => factories.forEach((factory) => factory.start()),
    stop: () => factories.forEach((factory) => factory.stop()),
  }
}
