/** The interface of a kind to the operator. A new kind is a folder that exports a row, and that row in `kinds.ts`. */
import type { ApiKind } from '#api/kind.ts'
import type { EventReason } from '#api/event-table.ts'
import type { OwnWrites } from '#kube/own-writes.ts'
import type { Informer, KubeObject, ObjectRef } from '#kube/port.ts'
import type { SubjectLedger } from './books/subject-ledger.ts'
import type { Level } from './loop/level.ts'
import type { Reconcile } from './loop/reconciler.ts'
import type { OperatorDeps } from './operator-deps.ts'
import type { Acknowledgements } from './projection/acknowledgements.ts'
import type { Projection } from './projection/projection.ts'
import type { ProjectedModels } from './kinds/served-model/projected-models.ts'
import type { ProjectionChange } from './projection/store.ts'

/** One kind of item in the work queue. */
export interface Queue {
  readonly name: string
  readonly reconcile: Reconcile
  /** The informer whose objects are resynced; absent for items that are not objects. */
  readonly informer?: Informer
}

/** Work of a kind beyond reconciling single objects. */
export interface KindController {
  readonly queues: readonly Queue[]
  /**
   * Loads durable state, before any record is written to Redis. One unreadable object never fails the load.
   * @returns every record that must be in the projection
   * @throws KubeError if the state cannot be read; the caller tries again
   */
  prepare(): Promise<readonly ProjectionChange[]>
  /** Subscribes to the watches and enqueues all existing objects. From then on the watches enqueue changes. */
  start(): void
  /** Writes all changes that are not durable yet. */
  stop(): Promise<void>
  /** Newest revision in the durable state. A store with a lower revision has lost data. */
  readonly revision?: number
  /** Called when a record of this kind is in Redis. */
  onWritten?(id: string): void
  /** Whether an unwanted record must stay in Redis because its source cannot be read now. */
  keeps?(id: string): boolean
  /** Called every 10 minutes: reads the durable state again, which a user may have changed. */
  check?(): void
  /** Called after each poll of the gateways' acknowledgements. */
  onPoll?(): void
  /** Called when Redis stops or resumes answering. */
  onAvailability?(isAvailable: boolean): void
  /** Called when a gateway pod appears or disappears. */
  onServingChanged?(): void
  /** Called when the version of written records changes. */
  onVersion?(): void
  /**
   * Releases every object, during an uninstall.
   * @returns the numbers of released objects and of objects that could not be released
   */
  release?(): Promise<Released>
}

/** Result of an uninstall for the objects of one kind. */
export interface Released {
  readonly released: number
  readonly failed: number
}

/** Dependencies of every kind. */
export interface OperatorContext {
  readonly deps: OperatorDeps
  readonly informer: <T extends KubeObject>(api: Pick<ApiKind<T>, 'resource'>) => Informer<T>
  readonly projection: Projection
  readonly acknowledgements: Acknowledgements
  /** The ServedModel kind fills this before any kind starts. */
  readonly models: ProjectedModels
  readonly ownWrites: OwnWrites
  readonly ledger: SubjectLedger
  readonly enqueue: (kind: string, ref: ObjectRef, level: Level) => void
  readonly enqueueAfter: (kind: string, ref: ObjectRef, delayMs: number, level: Level) => void
  /** Number of a namespace's objects in the queue, without background work. */
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
