/**
 * How often the keys of one account may be made and edited in this process. One customer's loop would otherwise take the time of the API server, the
 * operator and the gateways from all others. Suspending and revoking are never held back.
 */
import type { Clock } from '#platform/clock.ts'
import { Refused } from '../http/refused.ts'

/** Changes at once after a rest. */
const BURST = 30
/** Changes a second after that. A person makes fewer. */
const PER_SECOND = 5
/** Accounts after which those that have rested are forgotten. */
const MOST_REMEMBERED = 10_000

interface Allowance {
  changes: number
  atMs: number
}

export class ChangeRate {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #allowances = new Map<string, Allowance>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Takes one change of an account. @throws Refused if there were too many, with the time to wait */
  take(account: string): void {
    const nowMs = this.#clock.monotonic()
    if (this.#allowances.size >= MOST_REMEMBERED) this.#forgetRested(nowMs)
    const changes = this.#changesOf(account, nowMs)
    if (changes < 1) {
      const retryAfter = Math.ceil((1 - changes) / PER_SECOND)
      throw new Refused('too-many-requests', 'The keys of your account change too often. Wait a moment, then try again.', { retryAfter })
    }
    this.#allowances.set(account, { changes: changes - 1, atMs: nowMs })
  }

  #changesOf(account: string, nowMs: number): number {
    const allowance = this.#allowances.get(account)
    return allowance === undefined ? BURST : Math.min(BURST, allowance.changes + ((nowMs - allowance.atMs) / 1_000) * PER_SECOND)
  }

  #forgetRested(nowMs: number): void {
    for (const account of this.#allowances.keys()) if (this.#changesOf(account, nowMs) === BURST) this.#allowances.delete(account)
  }
}
