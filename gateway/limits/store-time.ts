/** The time of the store as a process knows it. Monotonic times are ms; those of the store are whole ms since 1970. */
import type { LedgerCall } from '#contract/ledger/ledger-call.ts'
import { MAX_AMOUNT, PROCESS_TTL_MS } from '#contract/ledger/ledger-layout.ts'

/** The time of the store for one subject: that of the last answer, and the monotonic clock since then. */
export class SubjectTime {
  /** 0 before the first answer. */
  #toldMs = 0
  #askedAt = 0
  #toldAt = 0

  /** Takes the time from an answer. @param askedAt when the call left @param now when the answer arrived */
  told(nowMs: number, askedAt: number, now: number): void {
    this.#toldMs = nowMs
    this.#askedAt = askedAt
    this.#toldAt = now
  }

  /** Whether the store has answered within the time for which it remembers a process. */
  isFresh(now: number): boolean {
    return this.#toldMs > 0 && now - this.#toldAt < PROCESS_TTL_MS / 2
  }

  /** Never behind the store; undefined before the first answer. */
  at(now: number): number | undefined {
    return this.#toldMs === 0 ? undefined : this.#toldMs + 1 + Math.floor(now - this.#askedAt)
  }

  /** Bounds for a call that leaves now. */
  bounds(now: number): Pick<LedgerCall, 'earliestMs' | 'latestMs'> {
    if (this.#toldMs === 0) return { earliestMs: 0, latestMs: MAX_AMOUNT }
    return { earliestMs: this.#toldMs + Math.floor(now - this.#toldAt), latestMs: this.#toldMs + 1 + Math.ceil(now - this.#askedAt) }
  }
}

/** The clock of the store as this process knows it. Between calls it advances with the monotonic clock. */
export class StoreTime {
  #offset: number

  /** @param offset guess before the first answer: wall clock minus monotonic clock, in ms */
  constructor(offset: number) {
    this.#offset = offset
  }

  /** Takes the time `nowMs` from the answer to a call that left at `sentAt`. The result of `at` is never behind the store. */
  observe(nowMs: number, sentAt: number): void {
    this.#offset = nowMs + 1 - sentAt // the store rounds its time down to whole ms
  }

  /** ms since 1970, whole. @param now monotonic ms */
  at(now: number): number {
    return Math.floor(now + this.#offset)
  }
}
