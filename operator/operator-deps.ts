/** What the operator is made of; everything that differs between a cluster and a folder. */
import type { Log } from '../gateway/shared/log.ts'
import type { ApiKey } from './api/apikey.ts'
import type { ServedModel } from './api/served-model.ts'
import type { Clock } from '../gateway/shared/clock.ts'
import type { EventRecorder } from './kube/events.ts'
import type { Informer, KubePort } from './kube/port.ts'
import type { EndpointSlice, Namespace, Service } from './kube/resources.ts'
import type { ControllerMetrics } from './loop/controller.ts'
import type { LiveProcess, ProjectionStore } from './projection/store.ts'

/** The caches that reconcile reads. */
export interface OperatorInformers {
  readonly apiKeys: Informer<ApiKey>
  readonly servedModels: Informer<ServedModel>
  readonly services: Informer<Service>
  /** Of the watched namespaces and of the operator's own. */
  readonly endpointSlices: Informer<EndpointSlice>
  readonly namespaces: Informer<Namespace>
}

/** Who leads, and with which fencing token. */
export interface Leadership {
  readonly fence: () => number
  readonly raiseFence: (stored: number) => Promise<void>
  /** Throws when this process no longer leads. */
  readonly assertLeading: () => void
  /** Another leader has written to the store: this process must end. */
  readonly onFenced: (fence: number) => void
}

/** Settings that reconcile depends on. */
export interface OperatorSettings {
  /** The operator's own namespace. */
  readonly namespace: string
  readonly gatewayService: string
  readonly keyringShards: number
  /** Base URL of the gateways as clients reach them, without `/v1`. */
  readonly publicURL: string
  readonly revocationWaitMs: number
  /** Empty = all. */
  readonly watchNamespaces: readonly string[]
  /** Standalone only. */
  readonly allowLoopback: boolean
}

/** Where figures go; absent in standalone. */
export interface OperatorFigures {
  committed(shard: number, bytes: number, seconds: number): void
  revoked(seconds: number): void
  sweepRefused(): void
  polled(state: { readonly revision: number; readonly waiting: number; readonly live: readonly LiveProcess[] }): void
  controller(name: string): ControllerMetrics
}

/** All of it is passed in. */
export interface OperatorDeps {
  readonly kube: KubePort
  readonly informers: OperatorInformers
  readonly store: ProjectionStore
  readonly leader: Leadership
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  readonly settings: OperatorSettings
  readonly metrics?: OperatorFigures
}
