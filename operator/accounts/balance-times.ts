/** When a key of the store may grant, when its periods are closed, and when the holds of dead processes are dropped. Pure except for their memory. Times are monotonic ms. */
import type { LedgerBalance } from '#contract/ledger/account-spend.ts'

/** Time after which every process that holds something has reported again, ms: such a process reports every 4 s. */
const READY_AFTER_MS = 6_000
/** Shortest time between two changes of the period of an account, ms: a process that is cut off keeps what it could not report so long. */
const FOLD_EVERY_MS = 7_200_000
/** The same for an account whose open periods are nearly full. A process settles for 10 min into the period of its last reply. */
const EARLY_FOLD_EVERY_MS = 900_000

/**
 * Time for which a process without a heartbeat has held the same before its hold is dropped, ms. A process that was frozen may hold something
 * before its first heartbeat, which it sends within a second, is read.
 */
const HOLD_LASTS_MS = 10_000

interface Unready {
  readonly sinceMs: number
  /** What processes had reported at the last read, micro-units; undefined: nothing. */
  readonly reported: bigint | undefined
}

/** Accounts whose key in the store grants nothing, and since when. */
export class UnreadyKeys {
  readonly #since = new Map<string, Unready>()
  /** Accounts that this process has just begun. */
  readonly #opened = new Set<string>()

  /** No process can hold anything of the account. */
  opened(name: string): void {
    this.#opened.add(name)
  }

  /**
   * A read has found that the key grants nothing. If reports are lost once more, the wait begins again.
   * @param reported spend in the key, micro-units; undefined: there is no key
   */
  seen(name: string, reported: bigint | undefined, nowMs: number): void {
    const known = this.#since.get(name)
    const isLostAgain = known?.reported !== undefined && (reported === undefined || reported < known.reported)
    this.#since.set(name, { sinceMs: known === undefined || isLostAgain ? nowMs : known.sinceMs, reported })
  }

  /** Whether every process that holds something has reported. */
  isOver(name: string, nowMs: number): boolean {
    if (this.#opened.has(name)) return true
    const known = this.#since.get(name)
    return known !== undefined && nowMs - known.sinceMs >= READY_AFTER_MS
  }

  /** The key grants, or is about to: if it loses its content from now on, processes may hold something. */
  begun(name: string): void {
    this.#opened.delete(name)
    this.#since.delete(name)
  }

  /** The store did not answer: what was waited for so far does not count. */
  restart(): void {
    this.#since.clear()
  }
}

interface Fold {
  readonly openFrom: number | undefined
  readonly period: number
  readonly atMs: number
}

/** When the periods of each account have changed last, as this process has seen it. */
export class FoldTimes {
  readonly #last = new Map<string, Fold>()

  seen(name: string, { openFrom, period }: Pick<LedgerBalance, 'openFrom' | 'period'>, nowMs: number): void {
    const known = this.#last.get(name)
    if (known?.openFrom !== openFrom || known?.period !== period) this.#last.set(name, { openFrom, period, atMs: nowMs })
  }

  isDue(name: string, nowMs: number, isNearlyFull: boolean): boolean {
    const known = this.#last.get(name)
    return known !== undefined && nowMs - known.atMs >= (isNearlyFull ? EARLY_FOLD_EVERY_MS : FOLD_EVERY_MS)
  }
}

interface SeenHold {
  readonly held: number
  readonly sinceMs: number
}

/** What dead processes hold of each account, and since when unchanged. */
export class DeadHolds {
  readonly #seen = new Map<string, ReadonlyMap<string, SeenHold>>()

  /** @param dead all holds of dead processes at a read @returns those that have not changed for so long that no process is behind them */
  lasting(name: string, dead: ReadonlyArray<readonly [process: string, held: number]>, nowMs: number): typeof dead {
    const known = this.#seen.get(name)
    if (dead.length === 0) {
      this.#seen.delete(name)
      return dead
    }
    const seen = new Map(
      dead.map(([process, held]) => {
        const before = known?.get(process)
        return [process, before?.held === held ? before : { held, sinceMs: nowMs }]
      }),
    )
    this.#seen.set(name, seen)
    return dead.filter(([process]) => nowMs - (seen.get(process)?.sinceMs ?? nowMs) >= HOLD_LASTS_MS)
  }
}
