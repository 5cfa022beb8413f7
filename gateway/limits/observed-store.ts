import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { LedgerCallRefused, type LedgerStore } from './ledger.ts'

interface ObservedStoreDeps {
  readonly store: LedgerStore
  readonly clock: Clock
  readonly log: Log
  /** Turns a failure into a line that names the remedy. */
  readonly errorLine: (error: Error) => string
  /** Called when the store has counted a subject's spend from a budget. */
  readonly onSpent: (uid: string) => void
}

export interface StoreCalls {
  readonly answered: number
  readonly refused: number
  readonly failed: number
}

/** One line in this time, however many calls are refused, ms. */
const REFUSAL_LINE_EVERY_MS = 10_000

/** Wraps a store: counts its calls, logs its outages, and reports subjects that spend. */
export class ObservedStore implements LedgerStore {
  readonly #deps: ObservedStoreDeps
  readonly #outage: OutageLog
  readonly #calls = { answered: 0, refused: 0, failed: 0 }
  #nextLineAt = -Infinity

  constructor(deps: ObservedStoreDeps) {
    this.#deps = deps
    this.#outage = new OutageLog('limits', deps.log, deps.clock)
  }

  get calls(): StoreCalls {
    return this.#calls
  }

  async call(call: LedgerCall): Promise<LedgerReply> {
    try {
      const reply = await this.#deps.store.call(call)
      this.#calls.answered += 1
      this.#outage.works()
      const isCounted = reply.status === 'granted' || reply.status === 'short' || reply.status === 'window'
      if (isCounted && call.reports.some(({ spent, acknowledged }) => spent > acknowledged)) this.#deps.onSpent(call.subject)
      return reply
    } catch (error) {
      this.#failed(error)
      throw error
    }
  }

  ping(): Promise<void> {
    return this.#deps.store.ping()
  }

  /** Handles an error reply, or a bug of the gateway: the store works, and some limits cannot be checked. */
  refused(error: Error): void {
    const now = this.#deps.clock.monotonic()
    if (now < this.#nextLineAt) return
    this.#nextLineAt = now + REFUSAL_LINE_EVERY_MS
    this.#deps.log.error(`limits cannot be checked: ${this.#deps.errorLine(error)}`)
  }

  /** Every failure of one outage has another text, so the line is always the same. */
  #failed(error: unknown): void {
    if (error instanceof LedgerCallRefused) return void (this.#calls.refused += 1) // the ledger reports it
    this.#calls.failed += 1
    this.#outage.failed('limits: Redis does not answer; keys with limits are treated as their onStoreUnavailable says')
  }
}
