/** Dependencies of the operator: all parts that differ between a cluster and a folder of manifests. */
import type { Log } from '#platform/log.ts'
import type { Clock } from '#platform/clock.ts'
import type { OperatorConfig } from './config.ts'
import type { UsageSource } from './books/subject-ledger.ts'
import type { EventRecorder } from '#kube/events.ts'
import type { BalanceStore } from './books/balance-store.ts'
import type { OperatorLedgerStore } from './books/ledger-store.ts'
import type { OperatorUsageStore } from './usage/usage-store.ts'
import type { Informer, KubeObject, KubePort, Resource } from '#kube/port.ts'
import type { EndpointSlice, Namespace, Service } from '#kube/resources.ts'
import type { OperatorMetrics } from './metrics.ts'
import type { ProjectionStore } from './projection/store.ts'

/** The caches that reconcile reads. */
export interface OperatorInformers {
  /** For one of Headgate's kinds. */
  readonly of: <T extends KubeObject>(resource: Resource<T>) => Informer<T>
  readonly services: Informer<Service>
  /** In the watched namespaces and in the operator's own namespace. */
  readonly endpointSlices: Informer<EndpointSlice>
  /** undefined without the right to read namespaces. */
  readonly namespaces: Informer<Namespace> | undefined
}

export interface Leadership {
  /** Fencing token of this leader. */
  readonly fence: () => number
  /** Raises the fencing token above the one in the store. After the Lease was deleted, the store would otherwise refuse every write for ever. */
  readonly raiseFence: (stored: number) => Promise<void>
  /** @throws NotLeadingError */
  readonly assertLeading: () => void
  /** Called when a newer leader has written to the store: this process must end. */
  readonly onFenced: (fence: number) => void
}

export interface OperatorSettings extends Pick<
  OperatorConfig,
  | 'namespace'
  | 'gatewayService'
  | 'keyringShards'
  | 'publicURL'
  | 'revocationWaitMs'
  | 'retirement'
  | 'maxApiKeysPerNamespace'
  | 'maxModelBytesPerNamespace'
  | 'maxServedModelsPerNamespace'
  | 'redisTakeOver'
  | 'watchNamespaces'
  | 'formerNamespaces'
  | 'publishingNamespaces'
  | 'clusterAddressNamespaces'
  | 'accountRequiredNamespaces'
  | 'unprovenHashNamespaces'
  | 'hasAccounts'
  | 'billingCurrency'
  | 'billingLowBalance'
> {
  /** Shards of the model records and of the backend credentials; default: the number that the chart mounts. */
  readonly mountedShards?: number
  /** Standalone only. */
  readonly allowLoopback: boolean
}

export type LedgerMetrics = OperatorMetrics['ledger']

export interface OperatorDeps {
  readonly kube: KubePort
  readonly informers: OperatorInformers
  readonly store: ProjectionStore
  readonly leader: Leadership
  readonly events: EventRecorder
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
  readonly log: Log
  readonly settings: OperatorSettings
  /** Absent in standalone. */
  readonly metrics?: OperatorMetrics
  /** Called with the identity of this installation before the first call to a store; absent: every store is this installation's own. */
  readonly onInstallation?: (id: string) => void
  /** Called when Redis turns out to belong to another installation; absent: the operator says so and waits. */
  readonly onForeignStore?: (why: string) => void
  /** Where gateways count limits; absent if they count in the memory of this process. */
  readonly ledger?: OperatorLedgerStore
  /** Where gateways count the spend of accounts. */
  readonly balanceStore: BalanceStore
  /** Whether that store began with this process, so that no gateway can hold anything of it from before. Standalone only. */
  readonly isBalanceStoreNew?: true
  /** Where gateways count what the keys of accounts use. */
  readonly usageStore: OperatorUsageStore
  /** A further source for the use of keys; absent if the ledger is the only one. */
  readonly usage?: UsageSource
}
