import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

const FIRST_REPEAT_MS = 1_000
const LAST_REPEAT_MS = 60_000

/** Logs a lasting failure: one line at once, again after 1 s, 2 s, 4 s … 60 s, and one line when it has ended. */
export class OutageLog {
  readonly #log: Log
  readonly #clock: Clock
  readonly #what: string
  #since: number | undefined
  #line = ''
  #nextMs = 0
  #repeatMs = FIRST_REPEAT_MS

  /** @param what first word of the last line, for example "Redis" */
  constructor(what: string, log: Log, clock: Clock) {
    this.#what = what
    this.#log = log
    this.#clock = clock
  }

  /** Reports a failure. @param line names the failure and the remedy */
  failed(line: string): void {
    const now = this.#clock.monotonic()
    this.#since ??= now
    const isNews = line !== this.#line
    if (isNews) this.#repeatMs = FIRST_REPEAT_MS
    if (!isNews && now < this.#nextMs) return
    this.#log.error(line)
    this.#line = line
    this.#nextMs = now + this.#repeatMs
    this.#repeatMs = Math.min(2 * this.#repeatMs, LAST_REPEAT_MS)
  }

  /** Reports a success. It is logged only after a failure. */
  works(): void {
    if (this.#since === undefined) return
    this.#log.info(`${this.#what}: works again after ${((this.#clock.monotonic() - this.#since) / 1_000).toFixed(1)} s`)
    this.#since = undefined
    this.#line = ''
    this.#nextMs = 0
  }
}
