/** Sums of the rows of usage: the figures, the parts of the chart, the tables. All of one answer, so that they agree. Pure. */
import type { UsageCountsView, UsageRow } from '../../server/page-data/usage.ts'
import { bySize, type Series, type Stacks } from '../charts/stacks.ts'
import { microsOf, sumOf } from '../micros.ts'
import type { Filters } from './filters.ts'
import { type Period, periodIndex } from './periods.ts'

/** The name under which a gateway counts the models of a key beyond its most. */
const FURTHER_MODELS = 'Other'

export interface UsageTotals {
  /** Micro-units. */
  readonly spend: bigint
  /** All calls: answered, failed and refused. */
  readonly calls: bigint
  readonly answered: bigint
  readonly failed: bigint
  readonly refused: bigint
  readonly input: bigint
  /** Part of `input`. */
  readonly cached: bigint
  readonly output: bigint
  /** Whether a part of the tokens and of the spend is an estimate. */
  readonly hasEstimates: boolean
}

export function rowsFor(rows: readonly UsageRow[], { key, model }: Pick<Filters, 'key' | 'model'>): readonly UsageRow[] {
  return rows.filter((row) => (key === '' || row.key === key) && (model === '' || row.model === model))
}

export function totalsOf(rows: readonly UsageCountsView[]): UsageTotals {
  const sum = (valueOf: (row: UsageCountsView) => bigint): bigint => sumOf(rows.map(valueOf))
  const answered = sum(answeredOf)
  const failed = sum((row) => BigInt(row.failed))
  const refused = sum((row) => BigInt(row.refused))
  return {
    ...{ answered, failed, refused, calls: answered + failed + refused },
    spend: sum((row) => microsOf(row.cost)),
    input: sum((row) => BigInt(row.inputTokens)),
    cached: sum((row) => BigInt(row.cachedInputTokens)),
    output: sum((row) => BigInt(row.outputTokens)),
    hasEstimates: rows.some(({ estimated }) => estimated > 0),
  }
}

/**
 * Calls that a model server received and that did not fail. A call that failed before any server had received it is in `failed` alone, and the
 * counts do not tell such calls apart, so the number may be too small by them, and is never below 0.
 */
function answeredOf({ requests, failed }: UsageCountsView): bigint {
  return BigInt(Math.max(requests - failed, 0))
}

/** What the chart stacks. */
export type Parts = 'model' | 'key' | 'kind' | 'outcome'

/** Spend is by model, and by key where one model is picked. */
export function partsOf({ show, key, model }: Filters): Parts {
  if (show === 'tokens') return 'kind'
  if (show === 'requests') return 'outcome'
  return model !== '' && key === '' ? 'key' : 'model'
}

export function stacksOf(rows: readonly UsageRow[], periods: readonly Period[], parts: Parts): Stacks {
  const byColumn = periods.map((): UsageRow[] => [])
  for (const row of rows) byColumn[periodIndex(periods, row)]?.push(row)
  return { columns: periods, series: seriesOf(byColumn, parts) }
}

function seriesOf(byColumn: ReadonlyArray<readonly UsageRow[]>, parts: Parts): readonly Series[] {
  const totals = byColumn.map(totalsOf)
  switch (parts) {
    case 'model':
      return bySize(
        spendBy(byColumn, ({ model }) => idOfModel(model)),
        (id) => id || 'Other',
      )
    case 'key': {
      const names = new Map(byColumn.flat().map(({ key, keyName }) => [key, keyName]))
      return bySize(
        spendBy(byColumn, ({ key }) => key),
        (id) => names.get(id) || 'Other',
      )
    }
    case 'kind':
      return [
        { name: 'In', look: 1, values: totals.map(({ input, cached }) => input - cached) },
        { name: 'In, from the cache', look: 2, values: totals.map(({ cached }) => cached) },
        { name: 'Out', look: 3, values: totals.map(({ output }) => output) },
      ]
    case 'outcome':
      return [
        { name: 'Answered', look: 1, values: totals.map(({ answered }) => answered) },
        { name: 'Refused', look: 4, values: totals.map(({ refused }) => refused) },
        { name: 'Failed', look: 6, values: totals.map(({ failed }) => failed) },
      ]
  }
}

/** Spend by an id of the row and by column. */
function spendBy(byColumn: ReadonlyArray<readonly UsageRow[]>, idOf: (row: UsageRow) => string): Map<string, bigint[]> {
  const spend = new Map<string, bigint[]>()
  byColumn.forEach((rows, index) => {
    for (const row of rows) {
      const values = spend.get(idOf(row)) ?? byColumn.map(() => 0n)
      values[index] = (values[index] ?? 0n) + microsOf(row.cost)
      spend.set(idOf(row), values)
    }
  })
  return spend
}

function idOfModel(model: string): string {
  return model === FURTHER_MODELS ? '' : model
}

export interface ModelTotals extends UsageTotals {
  /** '' for calls without a known model. */
  readonly model: string
}

/** Models of which tokens were counted, the dearest first, and then those with most tokens. */
export function modelTotals(rows: readonly UsageRow[]): readonly ModelTotals[] {
  const byModel = Map.groupBy(rows, ({ model }) => idOfModel(model))
  return [...byModel]
    .map(([model, ofModel]) => ({ model, ...totalsOf(ofModel) }))
    .filter(({ spend, input, output }) => spend > 0n || input > 0n || output > 0n)
    .toSorted((a, b) => compare(b.spend, a.spend) || compare(b.input + b.output, a.input + a.output) || (a.model < b.model ? -1 : 1))
}

function compare(a: bigint, b: bigint): number {
  return a === b ? 0 : a < b ? -1 : 1
}

/** What a filter offers: what has been used, and what is picked already, by name. */
export function choices(
  used: ReadonlyArray<readonly [id: string, name: string]>,
  picked: string,
): ReadonlyArray<readonly [string, string]> {
  const names = new Map([...(picked === '' ? [] : [[picked, picked] as const]), ...used.filter(([id]) => id !== '')])
  return [...names].toSorted(([a, name], [b, otherName]) => name.localeCompare(otherName, 'en') || (a < b ? -1 : 1))
}
