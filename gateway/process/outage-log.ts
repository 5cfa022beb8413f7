import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

const FIRST_REPEAT_MS = 1_000
const LAST_REPEAT_MS = 60_000

/** Logs something that stays broken: one line at once, repeated after 1 s, 2 s, 4 s … 60 s, and one line when it works again. */
export class OutageLog {
  readonly #log: Log
  readonly #clock: Clock
  readonly #what: string
  #since: number | undefined
  #line = ''
  #nextMs = 0
  #repeatMs = FIRST_REPEAT_MS

  /** @param what begins the line of the recovery, for example "Redis" */
  constructor(what: string, log: Log, clock: Clock) {
    this.#what = what
    this.#log = log
    this.#clock = clock
  }

  /** Tells of a failure. @param line names what failed and the remedy */
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

  /** Tells that it works; says so in the log when it did not before. */
  works(): void {
    if (this.#since === undefined) return
    this.#log.info(`${this.#what}: works again after ${((this.#clock.monotonic() - this.#since) / 1_000).toFixed(1)} s`)
    this.#since = undefined
    this.#line = ''
    this.#nextMs = 0
  }
}
