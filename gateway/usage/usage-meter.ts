/** Counts the calls of keys with an account since the last report about the account. Every sum is in memory, so a call costs two look-ups. */
import {
  addCounts,
  countsOf,
  MAX_REPORTED_ROWS,
  NO_USAGE,
  type UsageColumn,
  type UsageCounts,
  type UsageReport,
  type UsageRow,
} from '#contract/usage/usage-report.ts'
import type { Clock } from '#platform/clock.ts'
import type { RowID } from '../errors.ts'

/** Whose call is counted, and for which model. */
export interface CountedCall {
  /** Name of the account in the ledger. */
  readonly account: string
  /** uid of the ApiKey. */
  readonly key: string
  /** '' if the call was refused before its model was known. */
  readonly model: string
}

interface AccountUsage {
  /** By key and model. */
  readonly rows: Map<string, UsageRow>
  /** Monotonic ms of the newest counted call. */
  newestMs: number
  /** The report that has perhaps not counted. */
  sent: (Omit<UsageReport, 'ageMs'> & { readonly newestMs: number }) | undefined
}

const REFUSED: Readonly<Partial<Record<RowID, UsageColumn>>> = {
  ...{ modelDenied: 'refusedModel', modelNotFound: 'refusedModel', unsupportedRoute: 'refusedModel' },
  ...{ requestsLimited: 'refusedRate', tokensLimited: 'refusedRate', concurrencyLimited: 'refusedRate' },
  ...{ budgetSpent: 'refusedBudget', budgetTooSmall: 'refusedBudget', budgetHeld: 'refusedBudget', noPrice: 'refusedBudget' },
  ...{ balanceExhausted: 'refusedBudget', balanceTooSmall: 'refusedBudget' },
}

export class UsageMeter {
  readonly #process: string
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #accounts = new Map<string, AccountUsage>()
  #number = 0

  /** @param process random per start */
  constructor(process: string, clock: Pick<Clock, 'monotonic'>) {
    this.#process = process
    this.#clock = clock
  }

  count({ account, key, model }: CountedCall, counts: UsageCounts): void {
    const usage = this.#accounts.get(account) ?? this.#open(account)
    const name = `${key}\n${model}`
    usage.rows.set(name, { key, model, counts: addCounts(usage.rows.get(name)?.counts ?? NO_USAGE, counts) })
    usage.newestMs = this.#clock.monotonic()
  }

  /** Counts a call that was refused before any server received it. */
  refused(call: CountedCall, row: RowID): void {
    this.count(call, countsOf({ [REFUSED[row] ?? 'refusedOther']: 1 }))
  }

  /** The reports that are due: one for each account, the same one again until it has counted. */
  reports(): readonly UsageReport[] {
    const nowMs = this.#clock.monotonic()
    return [...this.#accounts].map(([account, usage]) => {
      usage.sent ??= { account, process: this.#process, number: ++this.#number, rows: taken(usage.rows), newestMs: usage.newestMs }
      const { newestMs, ...report } = usage.sent
      return { ...report, ageMs: Math.max(0, Math.floor(nowMs - newestMs)) }
    })
  }

  /** Drops reports that have counted. */
  counted(reports: readonly UsageReport[]): void {
    for (const { account, number } of reports) {
      const usage = this.#accounts.get(account)
      if (usage?.sent?.number !== number) continue
      usage.sent = undefined
      if (usage.rows.size === 0) this.#accounts.delete(account)
    }
  }

  get isEmpty(): boolean {
    return this.#accounts.size === 0
  }

  #open(account: string): AccountUsage {
    const usage: AccountUsage = { rows: new Map(), newestMs: 0, sent: undefined }
    this.#accounts.set(account, usage)
    return usage
  }
}

/** Takes as many rows out as fit into a report. */
function taken(rows: Map<string, UsageRow>): readonly UsageRow[] {
  const some = [...rows].slice(0, MAX_REPORTED_ROWS)
  for (const [name] of some) rows.delete(name)
  return some.map(([, row]) => row)
}
