import { BackOff } from './back-off.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

/** Logs a lasting failure: one line at once, again after 1 s, 2 s, 4 s … 60 s, and one line when it has ended. */
export class OutageLog {
  readonly #log: Log
  readonly #clock: Clock
  readonly #what: string
  #since: number | undefined
  #line = ''
  readonly #repeat = new BackOff({ firstMs: 1_000, maxMs: 60_000 })

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
    if (line !== this.#line) this.#repeat.reset()
    if (this.#repeat.waitMs(now) > 0) return
    this.#log.error(line)
    this.#line = line
    this.#repeat.next({ nowMs: now })
  }

  /** Reports a success. It is logged only after a failure. */
  works(): void {
    if (this.#since === undefined) return
    this.#log.info(`${this.#what}: works again after ${((this.#clock.monotonic() - this.#since) / 1_000).toFixed(1)} s`)
    this.#since = undefined
    this.#line = ''
    this.#repeat.reset()
  }
}
