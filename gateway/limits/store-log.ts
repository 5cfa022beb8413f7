import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import type { CallEnd } from './subject-calls.ts'

/** One line in this time, however many calls are refused, ms. */
const REFUSAL_LINE_EVERY_MS = 10_000

/** Logs what the calls of a ledger say about Redis: outages, and calls that Redis refuses. */
export class StoreLog {
  readonly #log: Log
  readonly #clock: Clock
  readonly #outage: OutageLog
  #nextLineAt = -Infinity

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
    this.#outage = new OutageLog('limits', log, clock)
  }

  /** Every failure of one outage has another text, so the line is always the same. */
  ended(how: CallEnd): void {
    if (how === 'answered') this.#outage.works()
    if (how === 'failed')
      this.#outage.failed('limits: Redis does not answer; keys with limits are treated as their onStoreUnavailable says')
  }

  /** Handles an error reply, or a bug of the gateway: Redis works, and some limits cannot be checked. @param reason with the remedy */
  refused(reason: string): void {
    const now = this.#clock.monotonic()
    if (now < this.#nextLineAt) return
    this.#nextLineAt = now + REFUSAL_LINE_EVERY_MS
    this.#log.error(`limits cannot be checked: ${reason}`)
  }
}
