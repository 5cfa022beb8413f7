/** The controller of every kind: maps events to the queue, and runs what is particular to a kind through its `Kind`. */
import type { ApiKind } from '#api/kind.ts'
import { type ObjectRef, refOf } from '#kube/port.ts'
import { inTurns } from '../loop/in-parallel.ts'
import type { Level } from '../loop/level.ts'
import { createReconcile, isWait, type Reconcile } from '../loop/reconciler.ts'
import type { ProjectionChange } from '../projection/store.ts'
import { findByUid, type Kind, type KindRow, type OperatorContext, type Wake } from './kind.ts'

/** Maximum number of objects per turn of the event loop. */
const TURN = 100

export class ObjectController {
  readonly api: ApiKind
  readonly kind: Kind
  /** Of the kind, and of its items that are not objects. */
  readonly queues: ReadonlyArray<{ readonly name: string; readonly reconcile: Reconcile }>
  readonly #context: OperatorContext
  #isFollowing = false

  constructor({ api, create }: KindRow, context: OperatorContext) {
    const kind = create(context)
    this.api = api
    this.kind = kind
    this.#context = context
    this.queues = [kind, ...(kind.others ?? [])].map((one) => ({ name: one.name, reconcile: createReconcile(one, context) }))
  }

  /** Subscribes to the watches, and loads durable state. @returns every record that must be in the projection */
  async prepare(): Promise<readonly ProjectionChange[]> {
    this.#follow()
    return (await this.kind.prepare?.()) ?? []
  }

  start(): void {
    this.kind.start?.()
    void inTurns([...this.kind.informer.list()], TURN, (object) => this.#enqueueDue(refOf(object), 'background'))
  }

  /** Called when a record of this kind is in Redis, and when its outcome may have changed. */
  onChanged(uid: string): void {
    const object = findByUid(uid, this.kind.informer)
    if (object) this.#enqueueDue(refOf(object), 'change')
    else this.kind.orphaned?.(uid)
  }

  onPoll(): void {
    for (const uid of this.kind.polled?.() ?? []) this.onChanged(uid)
  }

  /** Called when Redis stops or resumes answering, and when a gateway pod appears or disappears. */
  onServingChanged(): void {
    for (const object of this.kind.informer.list())
      if (this.kind.isUnproven?.(this.#context.ownWrites.newest(object)) === true) this.#enqueue(refOf(object), 'background')
  }

  onVersion(): void {
    void inTurns([...this.kind.informer.list()], TURN, (object) => this.#enqueue(refOf(object), 'change'))
  }

  /** The queue holds the events of a start until the workers start. */
  #follow(): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    for (const subscribe of this.kind.watches) subscribe((wakes) => this.#wake(wakes))
  }

  #wake(wakes: Iterable<Wake>): void {
    for (const { ref, level, delayMs = 0 } of wakes) this.#context.enqueueAfter(this.kind.name, ref, delayMs, level)
  }

  /** Enqueues an object that has work, at the level of its next step; or at the time of its next change. */
  #enqueueDue(ref: ObjectRef, waiting: Level): void {
    const { kind } = this
    const observed = kind.observe(ref)
    if (observed === undefined) return
    const step = kind.nextStep(observed)
    if (step !== undefined && isWait(step)) return this.#enqueue(ref, waiting)
    if (step !== undefined && kind.isRoutine?.(step, observed) !== true) return this.#enqueue(ref, step.level)
    if (step === undefined && kind.settled?.(ref) === true) return this.#enqueue(ref, 'background')
    this.#enqueueChange(ref, observed)
  }

  #enqueueChange(ref: ObjectRef, observed: Exclude<ReturnType<Kind['observe']>, undefined>): void {
    const { kind } = this
    const changesInMs = (kind.nextChangeAtMs?.(observed) ?? 0) - this.#context.clock.now()
    if (changesInMs > 0) this.#context.enqueueAfter(kind.name, ref, changesInMs, 'background')
  }

  #enqueue(ref: ObjectRef, level: Level): void {
    this.#context.enqueue(this.kind.name, ref, level)
  }
}
