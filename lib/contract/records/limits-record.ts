/**
 * Limits and budgets within a record of a key or of another limited object. They count for the uid of the record, so a new value of the key
 * does not change the spend. Texts have short field names; only this file knows them.
 */
import { z } from 'zod'
import { LIMITS_FEATURE } from './format.ts'
import { MAX_MICROS } from '../values/micros.ts'

/** Largest amount of a budget, micro-units or tokens. */
export const MAX_AMOUNT: number = MAX_MICROS
/** Maximum number of budgets of one record. */
const MAX_BUDGETS = 4

/** Rates and concurrency, over all gateway pods together; an absent field means no limit. */
export interface Limits {
  /** In any 60 seconds. */
  readonly requestsPerMinute?: number | undefined
  /** In any 60 seconds. */
  readonly tokensPerMinute?: number | undefined
  readonly maxConcurrentRequests?: number | undefined
}

/** One budget. Its spend belongs to name, unit and window: a change of the amount keeps the spend. */
export interface BudgetRecord {
  readonly name: string
  readonly unit: 'Currency' | 'Tokens'
  /** Micro-units of the currency, or tokens: an integer from 0 to `MAX_AMOUNT`. */
  readonly amount: number
  readonly window: 'Lifetime' | 'Day' | 'Week' | 'Month'
  /** IANA name; UTC if the manifest names none. */
  readonly timeZone: string
  readonly onExceeded: 'Block' | 'Audit'
}

/** The limits of a record. */
export interface LimitedRecord {
  /** Absent: none. */
  readonly limits?: Limits | undefined
  /** Sorted by name; absent: none. */
  readonly budgets?: readonly BudgetRecord[] | undefined
  /** Policy for requests that cannot be counted; absent: FailClosed. */
  readonly onStoreUnavailable?: 'FailClosed' | 'LocalShare' | undefined
}

const wireLimits = z.object({
  rpm: z.int().positive().optional(),
  tpm: z.int().positive().optional(),
  conc: z.int().positive().optional(),
})

const wireBudget = z.object({
  name: z.string().min(1).max(63),
  unit: z.enum(['Currency', 'Tokens']),
  amt: z.int().min(0).max(MAX_AMOUNT),
  win: z.enum(['Lifetime', 'Day', 'Week', 'Month']),
  tz: z.string().min(1).max(64),
  on: z.enum(['Block', 'Audit']),
})

/** Fields that a record with limits has beside its own. */
export const limitFields = {
  lim: wireLimits.optional(),
  bud: z.array(wireBudget).min(1).max(MAX_BUDGETS).optional(),
  osu: z.enum(['FailClosed', 'LocalShare']).optional(),
}

type WireLimits = z.infer<z.ZodObject<typeof limitFields>>

/** Reads the fields of a text. Sets only present fields, because thousands of keys have none. */
export function limitsOf({ lim, bud, osu }: WireLimits): LimitedRecord {
  return {
    ...(lim && { limits: { requestsPerMinute: lim.rpm, tokensPerMinute: lim.tpm, maxConcurrentRequests: lim.conc } }),
    ...(bud && { budgets: bud.map(budgetOf) }),
    ...(osu && { onStoreUnavailable: osu }),
  }
}

/** The fields of a text; JSON leaves out those that are undefined. */
export function wireLimitsOf({ limits, budgets, onStoreUnavailable }: LimitedRecord): WireLimits {
  return {
    lim: limits && { rpm: limits.requestsPerMinute, tpm: limits.tokensPerMinute, conc: limits.maxConcurrentRequests },
    bud: budgets?.map(({ name, unit, amount, window, timeZone, onExceeded }) => ({
      ...{ name, unit, amt: amount, win: window },
      ...{ tz: timeZone, on: onExceeded },
    })),
    osu: onStoreUnavailable,
  }
}

/** A record whose needs depend on its limits. */
interface Needy extends LimitedRecord {
  readonly needs?: readonly string[] | undefined
  readonly state: 'Active' | 'Suspended' | 'Revoked'
}

/**
 * The needs of a text. A reader that cannot enforce limits must not admit a key with limits. The record of a refused key has no such need:
 * every reader must read the refusal, and can apply it without the limits.
 */
export function needsOf(record: Needy): readonly string[] {
  const others = (record.needs ?? []).filter((need) => need !== LIMITS_FEATURE)
  return record.state === 'Active' && mayRefuse(record) ? [...others, LIMITS_FEATURE] : others
}

/** The needs of a text that do not follow from its fields; undefined: none. */
export function otherNeeds(needs: readonly string[] | undefined): readonly string[] | undefined {
  const others = needs?.filter((need) => need !== LIMITS_FEATURE)
  return others?.length === 0 ? undefined : others
}

/** Budgets that only audit refuse nothing. */
function mayRefuse({ limits, budgets = [] }: LimitedRecord): boolean {
  return limits !== undefined || budgets.some(({ onExceeded }) => onExceeded === 'Block')
}

function budgetOf({ name, unit, amt, win, tz, on }: z.infer<typeof wireBudget>): BudgetRecord {
  return { name, unit, amount: amt, window: win, timeZone: tz, onExceeded: on }
}

interface Limited {
  readonly limits?: Limits | undefined
  readonly budgets?: readonly BudgetRecord[] | undefined
}

/** Whether two records of one key, or two states of one subject, have the same limits and budgets. */
export function hasSameLimits(a: Limited | undefined, b: Limited): boolean {
  return a === b || JSON.stringify([a?.limits, a?.budgets]) === JSON.stringify([b.limits, b.budgets])
}
