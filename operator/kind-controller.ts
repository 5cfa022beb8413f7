/** One kind as the operator runs it. A new kind is a folder that exports a row, and that row in `kinds.ts`. */
import type { ApiKind } from './api/kind.ts'
import type { EventReason } from './api/event-table.ts'
import type { OwnWrites } from './kube/own-writes.ts'
import type { Informer, KubeObject, ObjectRef } from './kube/port.ts'
import type { Level } from './loop/level.ts'
import type { Reconcile } from './loop/reconciler.ts'
import type { OperatorDeps } from './operator-deps.ts'
import type { Acknowledgements } from './projection/acknowledgements.ts'
import type { Projection } from './projection/projection.ts'
import type { ProjectedModels } from './projected-models.ts'
import type { ProjectionChange } from './projection/store.ts'

/** One kind of item in the work queue. */
export interface Queue {
  readonly name: string
  readonly reconcile: Reconcile
  /** Its objects are reconciled again now and then; absent for items that are no objects. */
  readonly informer?: Informer
}

/** What a kind does besides reconciling single objects. */
export interface KindController {
  readonly queues: readonly Queue[]
  /**
   * Before anything is projected: loads durable state. One unreadable object never fails it.
   * @returns every record that must be in the projection
   * @throws KubeError when nothing can be known; tried again
   */
  prepare(): Promise<readonly ProjectionChange[]>
  /** Subscribes to the watches and enqueues what exists; from then on changes are followed. */
  start(): void
  /** Writes what is not durable yet. */
  stop(): Promise<void>
  /** Newest revision that the durable state knows; a store below it has lost data. */
  readonly revision?: number
  /** The store of the projection is being made ready, at every take-over. @throws what the store throws; tried again */
  prepareStore?(): Promise<void>
  /**
   * Records of this kind are about to be written to Redis; they are when this has resolved. It must neither throw nor take long.
   * @param how rebuild: Redis has lost data, or went back to an older state
   */
  beforeProjected?(records: readonly ProjectionChange[], how: 'write' | 'rebuild'): Promise<void>
  /** A record of this kind has arrived in Redis. */
  onWritten?(id: string): void
  /** Whether a record in Redis that nobody wants must stay, since what it was made of cannot be read now. */
  keeps?(id: string): boolean
  /** The gateways have been asked what they have applied. */
  onPoll?(): void
  /** Redis answers again, or does not any more. */
  onAvailability?(isAvailable: boolean): void
  /** A gateway pod has appeared or disappeared. */
  onServingChanged?(): void
  /** The version in which records are written has changed. */
  onVersion?(): void
  /**
   * Headgate is being uninstalled: releases every object.
   * @returns how many were released and how many could not be
   */
  release?(): Promise<Released>
}

/** What became of the objects of one kind when Headgate was uninstalled. */
export interface Released {
  readonly released: number
  readonly failed: number
}

/** What every kind gets. */
export interface OperatorContext {
  readonly deps: OperatorDeps
  readonly informer: <T extends KubeObject>(api: Pick<ApiKind<T>, 'resource'>) => Informer<T>
  readonly projection: Projection
  readonly acknowledgements: Acknowledgements
  /** Filled by the kind of the models before any kind starts. */
  readonly models: ProjectedModels
  readonly ownWrites: OwnWrites
  readonly enqueue: (kind: string, ref: ObjectRef, level: Level) => void
  readonly enqueueAfter: (kind: string, ref: ObjectRef, delayMs: number, level: Level) => void
  /** Objects of a namespace that wait in the queue, those of background work excepted. */
  readonly backlogOf: (namespace: string) => number
  /** Writes one Event about an object; never throws. */
  readonly recordEvent: (object: KubeObject, reason: EventReason, note: string) => void
  /** Version in which entries and records are written: the lowest that every live gateway reads. */
  readonly version: () => number
}

/** One row of the table of kinds. */
export interface KindRow {
  readonly api: ApiKind
  readonly create: (context: OperatorContext) => KindController
}
