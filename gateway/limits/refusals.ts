import type { RefusedLimit } from './ledger.ts'

/** A limit that the store has found short. */
export interface Shortage {
  readonly limit: RefusedLimit
  /** Name of the budget; absent for rates and permits. */
  readonly budget?: string
  /** Remaining units. */
  readonly rest: number
  /** Monotonic ms at which the refused request would pass if it were alone; Infinity for never. */
  readonly passesAt: number
  /** Monotonic ms until which more than `rest` is refused without a call. */
  readonly cachedUntil: number
}

/** Others may return units of such a limit at any time. */
export const SHORT_CACHE_MS = 250

/** Recent refusals of the store, so that a storm of requests costs no calls. */
export class Refusals {
  /** Undefined until something is refused: most subjects never are. */
  #shortages: Map<string, Shortage> | undefined

  /** @param limit `r`, `t`, `permits`, or the id of a budget */
  set(limit: string, shortage: Shortage): void {
    this.#shortages ??= new Map()
    this.#shortages.set(limit, shortage)
  }

  /** @returns the shortage if more than its rest is lacking, so that the store need not be asked */
  find(limit: string, lacking: number, now: number): Shortage | undefined {
    const shortage = this.#shortages?.get(limit)
    if (!shortage || now >= shortage.cachedUntil || lacking <= shortage.rest) return undefined
    return shortage
  }

  /** Drops a refusal, because this process has returned units: the next request asks the store. */
  delete(limit: string): void {
    this.#shortages?.delete(limit)
    if (this.#shortages?.size === 0) this.#shortages = undefined
  }

  get isEmpty(): boolean {
    return this.#shortages === undefined
  }
}
