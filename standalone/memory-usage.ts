/** What gateways have counted for accounts, in the memory of one process. `lib/contract/ledger/ledger-usage.lua` does the same in Redis. */
import type { UsageStore } from '../gateway/usage/usage-reporter.ts'
import type { AskedUsage, OperatorUsageStore } from '../operator/usage/usage-store.ts'
import {
  addCounts,
  type DatedUsageRow,
  MAX_WAITING_ROWS,
  NO_USAGE,
  type TakenUsage,
  usageField,
  type UsageReport,
} from '#contract/usage/usage-report.ts'

interface WaitingUsage {
  readonly counted: Map<string, number>
  rows: Map<string, DatedUsageRow>
  taken: ReadonlyMap<string, DatedUsageRow>
  /** Number of the last take; undefined: it is the one that is durable. */
  takes: number | undefined
}

const DAY_MS = 86_400_000

export class MemoryUsage implements UsageStore, OperatorUsageStore {
  readonly #now: () => number
  readonly #accounts = new Map<string, WaitingUsage>()
  #hasAll: boolean
  #used = new Set<string>()

  /**
   * @param now ms since 1970
   * @param hasAll whether everything that was counted before is durable; otherwise an account that was used before has lost counts
   */
  constructor(now: () => number, hasAll = false) {
    this.#now = now
    this.#hasAll = hasAll
  }

  count(reports: readonly UsageReport[]): Promise<readonly UsageReport[]> {
    for (const report of reports) this.#count(report)
    return Promise.resolve(reports)
  }

  used(limit: number): Promise<readonly string[]> {
    const names = [...this.#used].slice(0, limit)
    for (const name of names) this.#used.delete(name)
    return Promise.resolve(names)
  }

  take(asked: readonly AskedUsage[]): Promise<readonly TakenUsage[]> {
    return Promise.resolve(asked.map((one) => this.#take(one)))
  }

  /** Loses everything, as an emptied Redis does. */
  empty(): void {
    this.#hasAll = false
    this.#accounts.clear()
    this.#used.clear()
  }

  #count({ account, process, number, ageMs, rows }: UsageReport): void {
    const waiting = this.#waiting(account)
    if ((waiting.counted.get(process) ?? 0) >= number) return
    const day = Math.floor((this.#now() - ageMs) / DAY_MS)
    for (const row of rows) {
      const known = waiting.rows.has(usageField({ ...row, day })) || waiting.rows.size < MAX_WAITING_ROWS
      const placed = known ? { ...row, day } : { ...row, day, key: '', model: '' }
      const field = usageField(placed)
      waiting.rows.set(field, { ...placed, counts: addCounts(waiting.rows.get(field)?.counts ?? NO_USAGE, row.counts) })
    }
    waiting.counted.set(process, number)
    this.#used.add(account)
  }

  #take({ account, known }: AskedUsage): TakenUsage {
    const waiting = this.#waiting(account)
    const nowMs = Math.floor(this.#now())
    waiting.takes ??= known
    if (waiting.takes !== known && waiting.takes !== known + 1) {
      Object.assign(waiting, { rows: new Map(), taken: new Map(), takes: known })
      return { state: 'lost', nowMs }
    }
    if (waiting.takes === known) {
      waiting.taken = new Map()
      if (waiting.rows.size === 0) return { state: 'none', nowMs }
      Object.assign(waiting, { rows: new Map(), taken: waiting.rows, takes: known + 1 })
    }
    return { state: 'rows', nowMs, number: waiting.takes, rows: [...waiting.taken.values()] }
  }

  #waiting(account: string): WaitingUsage {
    const found = this.#accounts.get(account)
    if (found) return found
    const made: WaitingUsage = { counted: new Map(), rows: new Map(), taken: new Map(), takes: this.#hasAll ? undefined : 0 }
    this.#accounts.set(account, made)
    return made
  }
}
