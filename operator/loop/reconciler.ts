/**
 * The protocol of every kind: observe the state, choose the first step that a check requests, apply the step, observe again. The reconciler
 * waits only for the one API call of a step. Commits, Redis writes and acknowledgements enqueue the object again when they are done.
 */
import { BackOff, SPREAD } from '#platform/back-off.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { isKubeError, type KubeError, type ObjectRef, refKey, retryAfterMs } from '#kube/port.ts'
import type { Leadership } from '../operator-deps.ts'
import { isLower, type Level } from './level.ts'

/** A step to apply. */
export interface StepBase {
  readonly do: string
  readonly level: Level
}

/** No step is possible now. An event enqueues the object, or the reconciler reads it again after `forMs`. */
export interface Wait {
  readonly do: 'wait'
  readonly forMs?: number
}

interface Retry extends Wait {
  readonly at: Level
}

/** A check of an object. The first check of a kind's list that returns a step decides. */
export type Check<Observed, Step extends StepBase> = (observed: Observed) => Step | Wait | undefined

/** The interface of a kind to the reconciler. */
export interface Reconciled<Observed = unknown, Step extends StepBase = StepBase> {
  /** For logs and metrics. */
  readonly name: string
  /** Reads memory only. @returns undefined if no work is left for this ref */
  observe(ref: ObjectRef): Observed | undefined
  /** Pure. @returns undefined if the cluster matches the object's spec */
  nextStep(observed: Observed): Step | Wait | undefined
  /** The step that reports the present state; also called while another step waits for its next try. */
  report?(observed: Observed): Step | undefined
  /** Makes at most one API call; its effects show in the next `observe`. */
  apply(step: Step, observed: Observed): Promise<void>
  /** Called when the object waits for an event, to subscribe to the event. */
  waits?(ref: ObjectRef, observed: Observed): void
  /** Time at which the outcome changes without an event, ms since 1970. */
  nextChangeAtMs?(observed: Observed): number | undefined
  /** Called when a step failed. `observe` shows the error until the step succeeds or the object settles. */
  failed?(ref: ObjectRef, step: Step, error: KubeError): void
  /** Called when a step was applied. */
  succeeded?(ref: ObjectRef, step: Step): void
  /** Called when no work is left. @returns whether an error was still shown, so that the status must be written again */
  settled?(ref: ObjectRef): boolean
}

/** Run again: after a pause if there is one, at this level. Empty: only an event enqueues the object again. */
export interface Requeue {
  readonly requeueAfterMs?: number
  readonly at?: Level
  /** A step failed, or a bug was met; for the metrics. */
  readonly failure?: 'step' | 'bug'
}

/** Runs one object at one level of urgency. */
export type Reconcile = (ref: ObjectRef, level: Level) => Promise<Requeue>

export interface ReconcilerDeps {
  readonly clock: Clock
  readonly log: Log
  /** [0, 1) */
  readonly random: () => number
  readonly leader: Pick<Leadership, 'assertLeading'>
}

/** After a conflict the next event of the watch suffices, which takes milliseconds. */
const BACK_OFF = { firstMs: 1_000, maxMs: 300_000, ...SPREAD, quickMs: 20 } as const
/** More steps than any path has: a mistake in `nextStep` shows as an error instead of a busy loop. */
const MAX_STEPS = 24
/** The name of a whole run among the failed steps. Errors of the API server are failures of steps. */
const RUN = 'run'

/** @returns the reconcile of one kind; the reconcile never rejects */
export function createReconcile<Observed, Step extends StepBase>(kind: Reconciled<Observed, Step>, deps: ReconcilerDeps): Reconcile {
  const reconciler = new Reconciler(kind, deps)
  return (ref, level) => reconciler.reconcile(ref, level)
}

class Reconciler<Observed, Step extends StepBase> {
  readonly #kind: Reconciled<Observed, Step>
  readonly #deps: ReconcilerDeps
  readonly #failures: StepFailures

  constructor(kind: Reconciled<Observed, Step>, deps: ReconcilerDeps) {
    this.#kind = kind
    this.#deps = deps
    this.#failures = new StepFailures(deps)
  }

  async reconcile(ref: ObjectRef, level: Level): Promise<Requeue> {
    try {
      const end = await this.#run(ref, level)
      this.#failures.succeeded(refKey(ref), RUN)
      return end
    } catch (error) {
      const retryInMs = this.#failures.add(refKey(ref), RUN, false)
      const object = { kind: this.#kind.name, object: refKey(ref), retryInMs }
      const isBug = isProgrammerMistake(error)
      if (isBug) this.#deps.log.error({ ...object, err: error }, 'reconcile met a bug')
      else this.#deps.log.warn(object, `reconcile failed: ${messageOf(error)}`)
      return { requeueAfterMs: retryInMs, at: level, failure: isBug ? 'bug' : 'step' }
    }
  }

  async #run(ref: ObjectRef, level: Level): Promise<Requeue> {
    for (let count = 0; count < MAX_STEPS; count += 1) {
      const observed = this.#kind.observe(ref)
      const end = observed === undefined ? {} : await this.#advance(observed, ref, level)
      if (observed === undefined) this.#failures.forget(refKey(ref))
      if (end !== undefined) return end
    }
    const { name } = this.#kind
    throw new RangeError(`${name} ${refKey(ref)} does not settle in ${MAX_STEPS} steps; the next would be ${this.#nextName(ref)}`)
  }

  /** Takes one step. @returns how the run ends; undefined: there may be another step */
  async #advance(observed: Observed, ref: ObjectRef, level: Level): Promise<Requeue | undefined> {
    const kind = this.#kind
    const step = this.#pick(observed, ref)
    if (step === undefined) return kind.settled?.(ref) === true ? { at: 'background' } : pauseUntil([this.#changeInMs(observed)], level)
    if (isWait(step)) {
      kind.waits?.(ref, observed)
      return pauseUntil([step.forMs, this.#changeInMs(observed)], 'at' in step ? step.at : level)
    }
    return isLower(step.level, level) ? { at: step.level } : await this.#take(step, observed, ref)
  }

  /** A failed step waits for its next try, at the level of the step. Until then the status is still written. */
  #pick(observed: Observed, ref: ObjectRef): Step | Retry | Wait | undefined {
    const step = this.#kind.nextStep(observed)
    if (step === undefined || isWait(step)) return step
    const retryInMs = this.#failures.waitMs(refKey(ref), step.do)
    if (retryInMs <= 0) return step
    const report = this.#kind.report?.(observed)
    const canReport = report !== undefined && report.do !== step.do && this.#failures.waitMs(refKey(ref), report.do) <= 0
    return canReport ? report : { do: 'wait', forMs: retryInMs, at: step.level }
  }

  #changeInMs(observed: Observed): number | undefined {
    const atMs = this.#kind.nextChangeAtMs?.(observed)
    return atMs === undefined ? undefined : atMs - this.#deps.clock.now()
  }

  /** Applies a step. A failure is recorded, logged and tried again after a pause. @returns how the run ends after a failure */
  async #take(step: Step, observed: Observed, ref: ObjectRef): Promise<Requeue | undefined> {
    const kind = this.#kind
    try {
      this.#deps.leader.assertLeading()
      await kind.apply(step, observed)
    } catch (error) {
      if (!isKubeError(error)) throw error
      const isConflict = error.code === 'Conflict'
      const retryInMs = this.#failures.add(refKey(ref), step.do, isConflict, retryAfterMs(error))
      if (isConflict) return { at: 'background' } // the cached object was old; the watch delivers the new one
      kind.failed?.(ref, step, error)
      const object = { kind: kind.name, object: refKey(ref), step: step.do, retryInMs }
      this.#deps.log.warn(object, `${step.do} failed: ${error.message}`)
      return { at: 'background', ...(error.code !== 'NamespaceTerminating' && { failure: 'step' }) }
    }
    this.#failures.succeeded(refKey(ref), step.do)
    kind.succeeded?.(ref, step)
    return undefined
  }

  #nextName(ref: ObjectRef): string {
    const observed = this.#kind.observe(ref)
    return (observed && this.#kind.nextStep(observed)?.do) ?? 'none'
  }
}

/** Steps that failed, and when each may be tried again: back-offs by object and step. */
class StepFailures {
  readonly #deps: ReconcilerDeps
  readonly #failed = new Map<string, Map<string, BackOff>>()

  constructor(deps: ReconcilerDeps) {
    this.#deps = deps
  }

  /** Records a failure. @param atLeastMs the server's Retry-After @returns ms until the next try */
  add(object: string, step: string, isConflict: boolean, atLeastMs?: number): number {
    const { clock, random } = this.#deps
    const steps = this.#failed.get(object) ?? new Map<string, BackOff>()
    const backOff = steps.get(step) ?? new BackOff({ ...BACK_OFF, random })
    this.#failed.set(object, steps.set(step, backOff))
    return backOff.next({ nowMs: clock.monotonic(), isQuick: isConflict, atLeastMs })
  }

  /** @returns ms until the step may be tried again; 0 when it may be now */
  waitMs(object: string, step: string): number {
    return this.#failed.get(object)?.get(step)?.waitMs(this.#deps.clock.monotonic()) ?? 0
  }

  succeeded(object: string, step: string): void {
    const steps = this.#failed.get(object)
    steps?.delete(step)
    if (steps?.size === 0) this.#failed.delete(object)
  }

  forget(object: string): void {
    this.#failed.delete(object)
  }
}

/** @returns when the object runs again without an event */
function pauseUntil(inMs: readonly (number | undefined)[], at: Level): Requeue {
  const soonest = Math.min(...inMs.map((ms) => ms ?? Infinity))
  return Number.isFinite(soonest) ? { requeueAfterMs: Math.max(1, soonest), at } : {}
}

/** @returns the first answer of an ordered list of checks */
export function firstAnswer<Observed, Step extends StepBase>(
  checks: ReadonlyArray<Check<Observed, Step>>,
  observed: Observed,
): Step | Wait | undefined {
  for (const check of checks) {
    const answer = check(observed)
    if (answer !== undefined) return answer
  }
  return undefined
}

/** @returns whether the answer of a check is a wait */
export function isWait<Step extends StepBase>(answer: Step | Retry | Wait): answer is Retry | Wait {
  return answer.do === 'wait'
}

function isProgrammerMistake(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError
}
