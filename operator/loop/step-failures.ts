/** Steps that failed, and when each may be tried again. */
import { BackOff, SPREAD } from '#platform/back-off.ts'
import type { Clock } from '#platform/clock.ts'

/** After a conflict the next event of the watch suffices, which takes milliseconds. */
const BACK_OFF = { firstMs: 1_000, maxMs: 300_000, ...SPREAD, quickMs: 20 } as const

/** The back-offs of steps by object and step. */
export class StepFailures {
  readonly #deps: { readonly clock: Clock; readonly random: () => number }
  readonly #failed = new Map<string, Map<string, BackOff>>()

  /** @param deps random: [0, 1) */
  constructor(deps: { readonly clock: Clock; readonly random: () => number }) {
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
