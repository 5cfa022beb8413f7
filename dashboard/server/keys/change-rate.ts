/**
 * How often the keys of one account may be made and edited in this process. One customer's loop would otherwise take the time of the API server, the
 * operator and the gateways from all others. Suspending and revoking are never held back.
 */
import { type Clock, sleep } from '#platform/clock.ts'
import { Refused } from '../http/refused.ts'

/** Changes at once after a rest. */
const BURST = 10
/** Changes a second after that. A person makes fewer. */
const PER_SECOND = 5
/** Changes that wait for their turn; further ones are refused. */
const MAX_WAITING = 10
/** Accounts after which those that have rested are forgotten. */
const MAX_REMEMBERED = 10_000

interface Allowance {
  /** Below 0: so many changes wait. */
  readonly changes: number
  readonly atMs: number
}

export class ChangeRate {
  readonly #clock: Clock
  readonly #allowances = new Map<string, Allowance>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Waits until an account may make one more change. @throws Refused if too many wait, with the time after which one has room */
  async take(account: string): Promise<void> {
    const nowMs = this.#clock.monotonic()
    if (this.#allowances.size >= MAX_REMEMBERED) this.#forgetRested(nowMs)
    const left = this.#changesOf(account, nowMs) - 1
    if (left < -MAX_WAITING) {
      const retryAfter = Math.ceil((-MAX_WAITING - left) / PER_SECOND)
      throw new Refused('too-many-requests', 'The keys of your account change too often. Wait a moment, then try again.', { retryAfter })
    }
    this.#allowances.set(account, { changes: left, atMs: nowMs })
    if (left < 0) await sleep(this.#clock, (-left / PER_SECOND) * 1_000)
  }

  #changesOf(account: string, nowMs: number): number {
    const allowance = this.#allowances.get(account)
    return allowance === undefined ? BURST : Math.min(BURST, allowance.changes + ((nowMs - allowance.atMs) / 1_000) * PER_SECOND)
  }

  #forgetRested(nowMs: number): void {
    for (const account of this.#allowances.keys()) if (this.#changesOf(account, nowMs) === BURST) this.#allowances.delete(account)
  }
}
