/** Since when the API server does not answer the watch of Accounts: what the pages show is of that time. */
import type { Clock } from '#platform/clock.ts'
import type { OutageLog } from '#platform/outage-log.ts'

/** Stands before the log of outages. */
export class ClusterOutage implements Pick<OutageLog, 'failed' | 'works'> {
  readonly #log: Pick<OutageLog, 'failed' | 'works'>
  readonly #clock: Clock
  #sinceMs: number | undefined

  constructor(log: Pick<OutageLog, 'failed' | 'works'>, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** ms since 1970; undefined while the API server answers. */
  get sinceMs(): number | undefined {
    return this.#sinceMs
  }

  failed(line: string): void {
    this.#sinceMs ??= this.#clock.now()
    this.#log.failed(line)
  }

  works(): void {
    this.#sinceMs = undefined
    this.#log.works()
  }
}
