/** Dependencies of the reconcile of a ServedModel. */
import type { Clock } from '#platform/clock.ts'
import type { EventReason } from '#api/event-table.ts'
import type { ServedModel } from '#api/served-model.ts'
import type { Informer, KubeObject, KubePort, ObjectRef } from '#kube/port.ts'
import type { EndpointSlice, Namespace, Service } from '#kube/resources.ts'
import type { Level } from '../../loop/level.ts'
import type { LiveProcess } from '../../projection/store.ts'
import type { ProjectedModels } from './projected-models.ts'
import type { AdoptedRecords } from './adopted-records.ts'
import type { CredentialMemory } from './credential-memory.ts'
import type { ModelMemory } from './model-memory.ts'
import type { ModelRegistry } from './model-registry.ts'
import type { Confirmation } from './observed.ts'

/** Writes records to Redis in the background; a finished write enqueues the object. */
export interface ModelProjection {
  readonly available: boolean
  /** @param text undefined: no record */
  want(kind: 'model', id: string, text: string | undefined, level: Level): void
  /** @returns the revision of exactly this record; undefined if the revision is unknown */
  present(kind: 'model', id: string, text: string | undefined): { readonly revision: number } | undefined
  /** Forgets a deleted record. */
  forget(kind: 'model', id: string): void
}

/** Acknowledgements of gateways: the revisions that they have applied. */
export interface ModelAcknowledgements {
  readonly live: readonly LiveProcess[]
  confirmation(revision: number, uid: string): Confirmation
  /** @param said the counts in the status: other counts enqueue the object too */
  expect(key: string, revision: number, uid: string, said?: { readonly ready: number; readonly total: number }): void
  forget(key: string): void
}

/** The Secrets that gateways mount, written in the background. A finished write enqueues the object. */
export interface MountedModels {
  setModel(
    uid: string,
    model: { readonly namespace: string; readonly text: string | undefined; readonly credentials: readonly string[] },
  ): void
  /** Keeps the entries of this model unchanged. */
  keep(uid: string): void
  deleteModel(uid: string): void
  /** Why the last `setModel` was not written completely. The caller must call `setModel` again. */
  refusal(uid: string): Error | undefined
}

/** The objects that this process wrote, until the watch delivers them. */
export interface OwnWrites {
  remember(object: KubeObject): void
  newest<T extends KubeObject>(cached: T): T
}

/** The work queue, for objects of this kind. */
export interface ModelQueue {
  enqueue(ref: ObjectRef, level: Level): void
  enqueueAfter(ref: ObjectRef, delayMs: number, level: Level): void
}

/** State of the reconcile between two runs. */
export interface ModelState {
  readonly registry: ModelRegistry
  readonly credentials: CredentialMemory
  readonly adopted: AdoptedRecords
  readonly memory: ModelMemory
}

/** Settings that ServedModels depend on. */
export interface ServedModelSettings {
  readonly maxServedModelsPerNamespace: number
  /** Namespaces whose models may be open to others; `*` = any. */
  readonly publishingNamespaces: readonly string[]
  /** Allows loopback backends; only in standalone. */
  readonly allowLoopback: boolean
}

/** All dependencies, passed in by the composition. */
export interface ServedModelDeps {
  readonly kube: Pick<KubePort, 'get' | 'applyStatus'>
  readonly servedModels: Informer<ServedModel>
  readonly services: Informer<Service>
  readonly endpointSlices: Informer<EndpointSlice>
  /** undefined or never synced if the operator may not read namespaces. */
  readonly namespaces: Informer<Namespace> | undefined
  /** EndpointSlices of one Service. */
  readonly slicesOf: (namespace: string, service: string) => Iterable<EndpointSlice>
  readonly projection: ModelProjection
  /** The records in Redis, by uid. @throws if Redis does not answer */
  readonly standingRecords: () => Promise<Iterable<readonly [uid: string, text: string]>>
  readonly acknowledgements: ModelAcknowledgements
  readonly mounted: MountedModels
  readonly ownWrites: OwnWrites
  readonly queue: ModelQueue
  /** Names, prices and bounds of the models, for keys. */
  readonly models: Pick<ProjectedModels, 'set' | 'delete'>
  /** Writes one Event; never throws. */
  readonly recordEvent: (object: KubeObject, reason: EventReason, note: string) => void
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
  /** Format version of the records that this operator writes. */
  readonly version: () => number
  /** Throws if this process no longer leads. */
  readonly assertLeading: () => void
  readonly settings: ServedModelSettings
}
