/**
 * The protocol of every kind: observe the state, choose the first step that a check requests, apply the step, observe again. The reconciler
 * waits only for the one API call of a step. Commits, Redis writes and acknowledgements enqueue the object again when they are done.
 */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { isKubeError, type KubeError, type ObjectRef, refKey } from '#kube/port.ts'
import { isLower, type Level } from './level.ts'
import { StepFailures } from './step-failures.ts'

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

/** The wait of a step that failed. */
interface Retry extends Wait {
  readonly at: Level
}

/** A check of an object. The first check of a kind's list that returns a step decides. */
export type Check<Observed, Step extends StepBase> = (observed: Observed) => Step | Wait | undefined

/** The interface of a kind to the reconciler. */
export interface Reconciled<Observed, Step extends StepBase> {
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
}

/** Runs one object at one level of urgency. */
export type Reconcile = (ref: ObjectRef, level: Level) => Promise<Requeue>

/** Dependencies of a reconciler besides its kind. */
export interface ReconcilerDeps {
  readonly clock: Clock
  readonly log: Log
  /** [0, 1) */
  readonly random: () => number
}

/** More steps than any path has: a mistake in `nextStep` shows as an error instead of a busy loop. */
const MAX_STEPS = 24

/** @returns the reconcile of one kind */
export function createReconcile<Observed, Step extends StepBase>(kind: Reconciled<Observed, Step>, deps: ReconcilerDeps): Reconcile {
  const failures = new StepFailures(deps)

  return async (ref, level) => {
    for (let count = 0; count < MAX_STEPS; count += 1) {
      const observed = kind.observe(ref)
      const end = observed === undefined ? {} : await advance(observed, ref, level)
      if (observed === undefined) failures.forget(refKey(ref))
      if (end !== undefined) return end
    }
    throw new RangeError(`${kind.name} ${refKey(ref)} does not settle in ${MAX_STEPS} steps; the next would be ${nextName(kind, ref)}`)
  }

  /** Takes one step. @returns how the run ends; undefined: there may be another step */
  async function advance(observed: Observed, ref: ObjectRef, level: Level): Promise<Requeue | undefined> {
    const step = pick(observed, ref)
    if (step === undefined) return kind.settled?.(ref) === true ? { at: 'background' } : pauseUntil([changeInMs(observed)], level)
    if (isWait(step)) {
      kind.waits?.(ref, observed)
      return pauseUntil([step.forMs, changeInMs(observed)], 'at' in step ? step.at : level)
    }
    if (isLower(step.level, level)) return { at: step.level }
    return (await succeeds(step, observed, ref)) ? undefined : { at: 'background' }
  }

  /** A failed step waits for its next try, at the level of the step. Until then the status is still written. */
  function pick(observed: Observed, ref: ObjectRef): Step | Retry | Wait | undefined {
    const step = kind.nextStep(observed)
    if (step === undefined || isWait(step)) return step
    const retryInMs = failures.waitMs(refKey(ref), step.do)
    if (retryInMs <= 0) return step
    const report = kind.report?.(observed)
    const canReport = report !== undefined && report.do !== step.do && failures.waitMs(refKey(ref), report.do) <= 0
    return canReport ? report : { do: 'wait', forMs: retryInMs, at: step.level }
  }

  function changeInMs(observed: Observed): number | undefined {
    const atMs = kind.nextChangeAtMs?.(observed)
    return atMs === undefined ? undefined : atMs - deps.clock.now()
  }

  /** @returns whether the step was applied. A failure is recorded, logged and tried again after a pause */
  async function succeeds(step: Step, observed: Observed, ref: ObjectRef): Promise<boolean> {
    try {
      await kind.apply(step, observed)
    } catch (error) {
      if (!isKubeError(error)) throw error
      const isConflict = error.code === 'Conflict'
      const retryInMs = failures.add(refKey(ref), step.do, isConflict)
      if (isConflict) return false // the cached object was old; the watch delivers the new one
      kind.failed?.(ref, step, error)
      deps.log.warn({ kind: kind.name, object: refKey(ref), step: step.do, retryInMs }, `${step.do} failed: ${error.message}`)
      return false
    }
    failures.succeeded(refKey(ref), step.do)
    kind.succeeded?.(ref, step)
    return true
  }
}

function nextName<Observed, Step extends StepBase>(kind: Reconciled<Observed, Step>, ref: ObjectRef): string {
  const observed = kind.observe(ref)
  return (observed && kind.nextStep(observed)?.do) ?? 'none'
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
