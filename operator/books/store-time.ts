/** The time of the store. Gateways count windows by that clock; the wall clock of a leader may differ by days. */
import type { Clock } from '#platform/clock.ts'
import type { OperatorLedgerStore } from './ledger-store.ts'

export class StoreTime {
  readonly #store: Pick<OperatorLedgerStore, 'timeMs'>
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  /** The time at monotonic 0, ms since 1970; undefined before the first read. */
  #originMs: number | undefined

  constructor(store: Pick<OperatorLedgerStore, 'timeMs'>, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#store = store
    this.#clock = clock
  }

  /** @returns ms since 1970 @throws errors of the store */
  async read(): Promise<number> {
    const nowMs = await this.#store.timeMs()
    this.#originMs = nowMs - this.#clock.monotonic()
    return nowMs
  }

  /** The time since the last read, ms since 1970; before the first read the wall clock, which is good enough for a status. */
  now(): number {
    return this.known() ?? this.#clock.now()
  }

  /** The same; undefined before the first read. */
  known(): number | undefined {
    return this.#originMs === undefined ? undefined : Math.floor(this.#originMs + this.#clock.monotonic())
  }
}
