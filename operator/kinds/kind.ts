/** The interface of a kind to the operator. A new kind is a folder that exports a row, and that row in `kinds.ts`. */
import type { ApiKind } from '#api/kind.ts'
import type { EventReason } from '#api/event-table.ts'
import { UID_INDEX } from '#kube/indexes.ts'
import type { OwnWrites } from '#kube/own-writes.ts'
import type { Informer, KubeObject, ObjectRef } from '#kube/port.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Subjects } from '../books/subject-ledger.ts'
import type { Level } from '../loop/level.ts'
import type { Reconciled, StepBase } from '../loop/reconciler.ts'
import type { OperatorDeps } from '../operator-deps.ts'
import type { Acknowledgements } from '../projection/acknowledgements.ts'
import type { Projection } from '../projection/projection.ts'
import type { ProjectionChange } from '../projection/store.ts'
import type { ProjectedModels } from './served-model/projected-models.ts'

export interface KindRow {
  readonly api: ApiKind
  readonly create: (context: OperatorContext) => Kind
}

export interface OperatorContext extends OperatorDeps {
  readonly projection: Projection
  readonly acknowledgements: Acknowledgements
  /** The ServedModel kind fills this before any kind starts. */
  readonly models: ProjectedModels
  readonly accounts: Accounts
  readonly ownWrites: OwnWrites
  readonly subjects: Subjects
  readonly enqueue: (kind: string, ref: ObjectRef, level: Level) => void
  readonly enqueueAfter: (kind: string, ref: ObjectRef, delayMs: number, level: Level) => void
  /** Number of a tenant's objects in the queue, without background work. */
  readonly backlogOf: (tenant: string) => number
  /** Writes one Event about an object; never throws. */
  readonly recordEvent: (object: KubeObject, reason: EventReason, note: string) => void
  /** Version in which entries and records are written: the lowest that every live gateway reads. */
  readonly version: () => number
  /** The secret of this installation. */
  readonly secret: () => string
}

export interface Wake {
  readonly ref: ObjectRef
  readonly level: Level
  /** Of several delays of one object the earliest counts. */
  readonly delayMs?: number
}

/** Watched objects, and the objects of the kind that each change enqueues. */
export type Watch = (enqueue: (wakes: Iterable<Wake>) => void) => void

/** @param wakes objects of the kind that are affected by a change of a watched object */
export function watch<T extends KubeObject>(
  informer: Pick<Informer<T>, 'subscribe'>,
  wakes: (before: T | undefined, after: T | undefined) => Iterable<Wake>,
): Watch {
  return (enqueue) => informer.subscribe((before, after) => enqueue(wakes(before, after)))
}

export function findByUid<T extends KubeObject>(uid: string, informer: Pick<Informer<T>, 'byIndex'>): T | undefined {
  for (const object of informer.byIndex(UID_INDEX, uid)) return object
  return undefined
}

/** A kind, for the controller that all kinds share. Optional members are for kinds with durable state, records or other items. */
export interface Kind<T extends KubeObject = KubeObject, Observed = unknown, Step extends StepBase = StepBase> extends Reconciled<
  Observed,
  Step
> {
  readonly informer: Informer<T>
  /** The kind itself, and the objects to which its objects refer. */
  readonly watches: readonly Watch[]
  /** Items in the queue that are not objects of the kind. */
  readonly others?: readonly Reconciled[]
  /** Newest revision in the durable state. A store with a lower revision has lost data. */
  readonly revision?: number
  /** Called when the caches are filled, and again after an error. Loads durable state. @returns every record that must be in the projection @throws KubeError; the caller tries again */
  prepare?(): Promise<readonly ProjectionChange[]>
  /**
   * Called at the first contact with Redis, before unwanted records are deleted there.
   * @param isTakenOver whether its data are those of another installation, of which only what belongs to this one may stay
   * @throws if Redis fails; the caller tries again
   */
  reached?(isTakenOver: boolean): Promise<void>
  start?(): void
  /** Writes all changes that are not durable yet. */
  stop?(): Promise<void>
  /** Called when a record without an object was written to Redis. */
  orphaned?(uid: string): void
  /** Whether an unwanted record must stay in Redis because its source cannot be read now. */
  keeps?(uid: string): boolean
  /** The record that stands for those which must exist and cannot be written. @param has whether Redis has a record of this uid */
  standIn?(has: (uid: string) => boolean): ProjectionChange | undefined
  /** Whether a step waits for the resync at a start: otherwise each start would read all Secrets at once. */
  isRoutine?(step: Step, observed: Observed): boolean
  /** Whether the status does not say yet that every gateway has the record. */
  isUnproven?(object: T): boolean
  /** Called after each poll of the gateways' acknowledgements. @returns uids of objects whose status may have changed */
  polled?(): Iterable<string>
  /** Called every 10 minutes: reads the durable state again, which a user may have changed. */
  check?(): void
}
