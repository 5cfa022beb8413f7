/** The controller of every kind: maps events to the queue, and runs what is particular to a kind through its `Kind`. */
import { breathe } from '#platform/clock.ts'
import { UID_INDEX } from '#kube/indexes.ts'
import { type KubeObject, type ObjectRef, refOf } from '#kube/port.ts'
import type { Level } from '../loop/level.ts'
import { createReconcile, isWait, type StepBase } from '../loop/reconciler.ts'
import type { ProjectionChange } from '../projection/store.ts'
import type { Kind, KindController, OperatorContext, Queue, Wake } from './kind.ts'

/** Most objects per turn of the event loop. */
const TURN = 100

/** @returns the controller of one kind */
export function createController<T extends KubeObject, Observed, Step extends StepBase>(
  kind: Kind<T, Observed, Step>,
  context: OperatorContext,
): KindController {
  return new ObjectController(kind, context)
}

class ObjectController<T extends KubeObject, Observed, Step extends StepBase> implements KindController {
  readonly queues: readonly Queue[]
  readonly #kind: Kind<T, Observed, Step>
  readonly #context: OperatorContext
  #isFollowing = false

  constructor(kind: Kind<T, Observed, Step>, context: OperatorContext) {
    this.#kind = kind
    this.#context = context
    this.queues = [{ name: kind.name, reconcile: createReconcile(kind, context), informer: kind.informer }, ...(kind.queues ?? [])]
  }

  get revision(): number {
    return this.#kind.revision ?? 0
  }

  async prepare(): Promise<readonly ProjectionChange[]> {
    this.#follow()
    return (await this.#kind.prepare?.()) ?? []
  }

  start(): void {
    this.#kind.start?.()
    void this.#inTurns((object) => this.#enqueueDue(refOf(object), 'background'))
  }

  async stop(): Promise<void> {
    await this.#kind.stop?.()
  }

  onWritten(uid: string): void {
    this.#changed(uid)
  }

  keeps(uid: string): boolean {
    return this.#kind.keeps?.(uid) === true
  }

  onPoll(): void {
    for (const uid of this.#kind.polled?.() ?? []) this.#changed(uid)
  }

  onServingChanged(): void {
    for (const object of this.#kind.informer.list())
      if (this.#kind.isUnproven?.(this.#context.ownWrites.newest(object)) === true) this.#enqueue(refOf(object), 'background')
  }

  onVersion(): void {
    void this.#inTurns((object) => this.#enqueue(refOf(object), 'change'))
  }

  check(): void {
    this.#kind.check?.()
  }

  /** The queue holds the events of a start until the workers start. */
  #follow(): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    this.#kind.follow?.()
    for (const { subscribe } of this.#kind.watches) subscribe((wakes) => this.#wake(wakes))
  }

  #wake(wakes: Iterable<Wake>): void {
    const { enqueueAfter } = this.#context
    for (const { ref, level, delayMs } of wakes) {
      if (delayMs === undefined) this.#enqueue(ref, level)
      else enqueueAfter(this.#kind.name, ref, delayMs, level)
    }
  }

  #changed(uid: string): void {
    const ref = this.#refOf(uid)
    if (ref) this.#enqueueDue(ref, 'change')
    else this.#kind.orphaned?.(uid)
  }

  #refOf(uid: string): ObjectRef | undefined {
    if (this.#kind.refOf) return this.#kind.refOf(uid)
    for (const object of this.#kind.informer.byIndex(UID_INDEX, uid)) return refOf(object)
    return undefined
  }

  /** Enqueues an object that has work, at the level of its next step; or at the time of its next change. */
  #enqueueDue(ref: ObjectRef, waiting: Level): void {
    const kind = this.#kind
    const observed = kind.observe(ref)
    if (observed === undefined) return
    const step = kind.nextStep(observed)
    if (step !== undefined && isWait(step)) return this.#enqueue(ref, waiting)
    if (step !== undefined && kind.isRoutine?.(step, observed) !== true) return this.#enqueue(ref, step.level)
    const changesInMs = (kind.nextChangeAtMs?.(observed) ?? 0) - this.#context.clock.now()
    if (changesInMs > 0) this.#context.enqueueAfter(kind.name, ref, changesInMs, 'background')
  }

  async #inTurns(visit: (object: T) => void): Promise<void> {
    let count = 0
    for (const object of [...this.#kind.informer.list()]) {
      count += 1
      if (count % TURN === 0) await breathe()
      visit(object)
    }
  }

  #enqueue(ref: ObjectRef, level: Level): void {
    this.#context.enqueue(this.#kind.name, ref, level)
  }
}
