/** Usage of an account, as `GET /api/usage?from=&to=&key=&model=` answers it. Days are UTC. No prompt and no single call is stored. */

export interface UsageCountsView {
  readonly requests: number
  readonly failed: number
  readonly refused: number
  /** `refused` by reason: the model is not allowed, a rate, a budget or the balance, anything else. Absent where only the sum is known. */
  readonly refusals?: { readonly model: number; readonly rate: number; readonly budget: number; readonly other: number }
  readonly inputTokens: number
  /** Part of inputTokens. */
  readonly cachedInputTokens: number
  readonly outputTokens: number
  /** Decimal. */
  readonly cost: string
  /** Part of `requests` whose tokens are estimates. */
  readonly estimated: number
}

export interface UsageRow extends UsageCountsView {
  /** `2026-11-24`; `2026-10` for a month that is older than 35 days and kept as a whole, with its days before `from` too. */
  readonly day: string
  /** Served name; '' for calls that were refused before their model was known, and for what found no room. */
  readonly model: string
  /** Id of the key, or '' for what found no room. */
  readonly key: string
  /** The name that the person gave; the id where the key is gone. */
  readonly keyName: string
}

export interface Usage {
  readonly from: string
  readonly to: string
  /** When the counts were last read; absent: the account was never used. */
  readonly asOf?: string
  /** Days of which up to 10 s of counts are lost. */
  readonly incomplete: readonly string[]
  /** Newer counts cannot be read now. Absent: they can. */
  readonly isLate?: boolean
  readonly currency: string
  readonly rows: readonly UsageRow[]
}

/*
 * Routes:
 *   GET /api/usage?from=&to=&key=&model=     → Usage; at most 90 days, 30 by default; a wrong day is 422 with `fields`
 *   GET /api/usage.csv?from=&to=&key=&model= → a CSV file
 */
