/**
 * What gateways count for the keys of accounts, and how the operator takes it. A report counts once: a store ignores one whose number is not
 * above that of the last report of its process about the account. What the operator takes stays until its number is in the books.
 */
import { z } from 'zod'
import { MAX_AMOUNT } from '../ledger/ledger-layout.ts'

/** What is counted, in the order in which counts are stored. Every count is an integer of at least 0. */
export const USAGE_COLUMNS = [
  /** Calls that a model server received. */
  'requests',
  /** Tokens of prompts, including those from a cache. */
  'inputTokens',
  'cachedInputTokens',
  'outputTokens',
  /** Micro-units, by the price of the model at the time. */
  'costMicros',
  /** Calls whose tokens are estimated in part, because the server did not report them. */
  'estimated',
  /** Calls that ended with an error of a server or of the gateway. */
  'failed',
  /** Refused calls, by reason: model, rate limit or concurrency, budget or balance, anything else. */
  'refusedModel',
  'refusedRate',
  'refusedBudget',
  'refusedOther',
] as const

export type UsageColumn = (typeof USAGE_COLUMNS)[number]

/** One count for each column, in their order. */
export type UsageCounts = readonly number[]

/** Counts of one key and one model. */
export interface UsageRow {
  /** uid of the ApiKey. */
  readonly key: string
  /** Name of the model as keys name it; '' for calls that were refused before their model was known. */
  readonly model: string
  readonly counts: UsageCounts
}

/** Counts of one day. Key and model are '' where the store had no room for another row. */
export interface DatedUsageRow extends UsageRow {
  /** Days since 1970, UTC, by the clock of the store. */
  readonly day: number
}

/** What one process has counted for one account since its last report. */
export interface UsageReport {
  /** Name of the account in the ledger. */
  readonly account: string
  /** Random per start of a process. */
  readonly process: string
  /** Larger than every earlier number of this process. */
  readonly number: number
  /** Age of its newest call, ms: the rows count on the day of that call. */
  readonly ageMs: number
  readonly rows: readonly UsageRow[]
}

/**
 * What a store had for the operator. `lost`: the store has lost what it had taken before, or has gone back to an older state; what it had is
 * dropped, because a part of it may be in the books.
 */
export type TakenUsage =
  | { readonly state: 'none' | 'lost'; readonly nowMs: number }
  | { readonly state: 'rows'; readonly nowMs: number; readonly number: number; readonly rows: readonly DatedUsageRow[] }

/** Largest number of rows of a report. */
export const MAX_REPORTED_ROWS = 256
/** Largest number of rows of one account that a store keeps until the operator takes them. */
export const MAX_WAITING_ROWS = 10_000

export const NO_USAGE: UsageCounts = USAGE_COLUMNS.map(() => 0)

/** Counts as a list. Columns that are not named are 0. */
export function countsOf(named: Readonly<Partial<Record<UsageColumn, number>>>): UsageCounts {
  return USAGE_COLUMNS.map((column) => named[column] ?? 0)
}

/** Sums stop at the largest number that every reader reads exactly. */
export function addCounts(a: UsageCounts, b: UsageCounts): UsageCounts {
  return a.map((count, at) => Math.min(MAX_AMOUNT - 1, count + (b[at] ?? 0)))
}

export const usageCounts = z.array(z.int().nonnegative()).length(USAGE_COLUMNS.length)

/** Name of a row in a store, by day, key and model. No name holds a line break. */
export function usageField({ day, key, model }: Omit<DatedUsageRow, 'counts'>): string {
  return `${day}\n${key}\n${model}`
}

/** Longest uid of a key and longest name of a model, characters: rows become durable, so their size is bounded. */
const MAX_KEY = 128
const MAX_MODEL = 253

/** @returns undefined for text that no store of this layout writes */
export function readUsageRow(field: string, counts: string): DatedUsageRow | undefined {
  const [day = '', key = '', model = '', ...rest] = field.split('\n')
  const read = usageCounts.safeParse(counts.split(' ').map(Number))
  const isLong = key.length > MAX_KEY || model.length > MAX_MODEL
  if (!/^\d{1,6}$/.test(day) || isLong || rest.length > 0 || !read.success) return undefined
  return { day: Number(day), key, model, counts: read.data }
}
