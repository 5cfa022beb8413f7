/** Steps that failed, and when each may be tried again. */
import type { Clock } from '#platform/clock.ts'

const FIRST_MS = 1_000
const MAX_MS = 300_000
const SPREAD = 0.2
/** After a conflict the next event of the watch suffices, which takes milliseconds. */
const CONFLICT_MS = 20
const QUICK_CONFLICTS = 5

interface Failed {
  readonly count: number
  readonly conflicts: number
  readonly retryAtMs: number
}

/** Remembers failures by object and step: 1 s doubling to 5 minutes, ±20 %; after a conflict 20 ms, at most 5 times in a row. */
export class StepFailures {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #failed = new Map<string, Map<string, Failed>>()

  /** @param deps random: [0, 1) */
  constructor(deps: { readonly clock: Clock; readonly random: () => number }) {
    this.#clock = deps.clock
    this.#random = deps.random
  }

  /** Records a failure. @param atLeastMs the server's Retry-After @returns ms until the next try */
  add(object: string, step: string, isConflict: boolean, atLeastMs = 0): number {
    const steps = this.#failed.get(object) ?? new Map<string, Failed>()
    this.#failed.set(object, steps)
    const former = steps.get(step) ?? { count: 0, conflicts: 0 }
    const isQuick = isConflict && former.conflicts < QUICK_CONFLICTS
    const bound = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(former.count, 16))
    const waitMs = Math.max(atLeastMs, isQuick ? CONFLICT_MS : Math.round(bound * (1 - SPREAD + this.#random() * 2 * SPREAD)))
    steps.set(step, {
      count: former.count + (isQuick ? 0 : 1),
      conflicts: former.conflicts + (isConflict ? 1 : 0),
      retryAtMs: this.#clock.monotonic() + waitMs,
    })
    return waitMs
  }

  /** @returns ms until the step may be tried again; 0 when it may be now */
  waitMs(object: string, step: string): number {
    const failed = this.#failed.get(object)?.get(step)
    return failed === undefined ? 0 : Math.max(0, failed.retryAtMs - this.#clock.monotonic())
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
