/** What a plan allows, in words. Pure. */
import type { BudgetView, LimitName, ModelView, PlanView, PriceView } from '../../server/page-data/keys.ts'
import { budgetAmount, windowWords } from '../budget-words.ts'
import { decimalOf, microsOf } from '../micros.ts'
import { whole } from '../money.ts'

export interface PlanRow {
  readonly name: string
  /** Of one key: the most. */
  readonly each: string
  /** Of a key that has none of its own. */
  readonly unset: string
  /** Of all keys together. */
  readonly shared: string
  /** Who sets `shared`. */
  readonly sharedOwner?: BudgetView['owner']
}

const NAMES: Readonly<Record<LimitName, string>> = {
  requestsPerMinute: 'Requests per minute',
  tokensPerMinute: 'Tokens per minute',
  maxConcurrentRequests: 'Calls at a time',
}
const NONE = '–'
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const

/** @param used keys that are neither revoked nor expired; undefined while that is not known */
export function planRows(plan: PlanView, used: number | undefined): readonly PlanRow[] {
  const { limits, budgets, ttl, most } = plan
  const ofBudgets = (isShared: boolean): string => {
    const some = budgets.filter((budget) => budget.isShared === isShared)
    return some.length === 0 ? NONE : some.map((budget) => budgetWords(budget, plan.currency)).join(' and ')
  }
  const sharedOwner = budgets.find(({ isShared }) => isShared)?.owner
  return [
    ...limits.map((limit) => ({
      name: NAMES[limit.limit],
      each: limit.ceiling === undefined ? 'no ceiling' : `at most ${whole(limit.ceiling)}`,
      unset: limit.default === undefined ? 'no limit' : whole(limit.default),
      shared: limit.shared === undefined ? NONE : whole(limit.shared),
      ...(limit.sharedOwner && { sharedOwner: limit.sharedOwner }),
    })),
    {
      name: 'Budgets, beside a key’s own',
      each: ofBudgets(false),
      unset: NONE,
      shared: ofBudgets(true),
      ...(sharedOwner && { sharedOwner }),
    },
    {
      name: 'Expiry',
      each: ttl?.ceiling === undefined ? 'no ceiling' : `at most ${durationWords(ttl.ceiling)}`,
      unset: ttl?.default === undefined ? 'never' : durationWords(ttl.default),
      shared: NONE,
    },
    { name: 'Keys', each: NONE, unset: NONE, shared: keysWords(used, most) },
  ]
}

function budgetWords(budget: BudgetView, currency: string): string {
  const watched = budget.isAudit ? ' (only watched)' : ''
  return `${budgetAmount(budget, budget.amount, currency)} ${windowWords(budget.window)}${watched}`
}

/** `7 of 20` */
export function keysWords(used: number | undefined, most: number | undefined): string {
  const of = most === undefined ? '' : ` of ${whole(most)}`
  return used === undefined ? (most === undefined ? NONE : `at most ${whole(most)}`) : `${whole(used)}${of}`
}

/** `365 days`, in the largest unit that is exact. @param seconds integer */
export function durationWords(seconds: number): string {
  const [unit, length] = UNITS.find(([, each]) => seconds % each === 0) ?? ['second', 1]
  const count = seconds / length
  return `${whole(count)} ${unit}${count === 1 ? '' : 's'}`
}

/** `128k` */
export function contextWords(tokens: number | undefined): string {
  if (tokens === undefined) return NONE
  if (tokens < 1000) return whole(tokens)
  const isBinary = tokens % 1024 === 0 && tokens % 1000 !== 0
  return `${whole(isBinary ? tokens / 1024 : Math.floor(tokens / 1000))}k`
}

/** A price with all its decimals, and at least two: `0.55`, `0.000125`. @param amount undefined: `–` */
export function priceWords(amount: string | undefined): string {
  return amount === undefined ? NONE : decimalOf(microsOf(amount)).replace(/0{1,4}$/, '')
}

/** A column of a table of models. */
export interface PriceColumn {
  readonly title: string
  readonly amountOf: (price: PriceView) => string | undefined
}

/** The columns of prices. Those that few models have appear only where a model has one. */
export function priceColumns(models: readonly ModelView[]): readonly PriceColumn[] {
  const hasWrites = models.some(({ price }) => price?.cacheWrite !== undefined)
  const hasCalls = models.some(({ price }) => price?.perRequest !== undefined)
  return [
    { title: 'In', amountOf: ({ input }) => input },
    { title: 'Cached', amountOf: ({ input, cachedInput = input }) => cachedInput },
    ...(hasWrites ? [{ title: 'Cache write', amountOf: ({ input, cacheWrite = input }: PriceView) => cacheWrite }] : []),
    { title: 'Out', amountOf: ({ output }) => output },
    ...(hasCalls ? [{ title: 'Per call', amountOf: ({ perRequest }: PriceView) => perRequest }] : []),
  ]
}
