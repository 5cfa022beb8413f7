/**
 * Limits and budgets: their fields in manifests (`api/limits.ts`) and in the record of a key or of another limited object. They count for
 * the uid of the record, so a new value of the key does not change the spend.
 */
import { z } from 'zod'
import { TIME_ZONE_NAME } from '../values/budget-window.ts'
import { MAX_MICROS } from '../values/micros.ts'
import { DNS_LABEL } from '../values/name-patterns.ts'
import { type DataOf, LIMITS_FEATURE } from './format.ts'

/** Largest amount of a budget, micro-units or tokens. */
export const MAX_AMOUNT: number = MAX_MICROS
/** Maximum number of budgets of one object. */
export const MAX_BUDGETS = 4
/** Longest name of a budget. */
export const MAX_BUDGET_NAME = 32

/** Rates and concurrency, over all gateway pods together; an absent field means no limit. */
export const limitFields = {
  requestsPerMinute: z
    .int()
    .min(1)
    .max(1_000_000_000)
    .describe('Maximum number of requests admitted in any 60 seconds, over all gateway pods together.')
    .optional(),
  tokensPerMinute: z
    .int()
    .min(1)
    .max(1_000_000_000_000)
    .describe('Maximum number of tokens, of prompts and answers together, in any 60 seconds, over all gateway pods together.')
    .optional(),
  maxConcurrentRequests: z
    .int()
    .min(1)
    .max(1_000_000)
    .describe('Maximum number of requests that run at the same time, over all gateway pods together.')
    .optional(),
}

const timeZone = z.string().regex(new RegExp(TIME_ZONE_NAME)).max(64)

/** One budget of a manifest. Its spend belongs to name, unit and window: a change of the amount keeps the spend. */
export const budgetFields = {
  name: z
    .string()
    .regex(new RegExp(DNS_LABEL))
    .max(MAX_BUDGET_NAME)
    .describe('Name of the budget. What was spent belongs to the name: a renamed budget starts at zero.'),
  amount: z
    .string()
    .min(1)
    .max(19)
    .describe(
      'Maximum to spend in a window. Currency: a decimal number with at most 9 digits before the point and 6 after it, above 0. Tokens: a whole number of at most 15 digits. Another amount keeps what was spent.',
    ),
  unit: z
    .enum(['Currency', 'Tokens'])
    .describe('Currency: the money that pricing of the models asks for. Tokens: tokens of prompts and answers.'),
  window: z
    .enum(['Lifetime', 'Day', 'Week', 'Month'])
    .describe('When the spend of the budget starts again at zero: never, at midnight, on Monday, or on the first.'),
  timeZone: timeZone
    .describe('IANA time zone of the window, such as Europe/Berlin. UTC where it is absent. Not with window Lifetime.')
    .optional(),
  onExceeded: z
    .enum(['Block', 'Audit'])
    .describe('Block: requests beyond the amount are refused. Audit: they are admitted, and the status shows what was spent.')
    .default('Block'),
}

/** Policy for requests that cannot be counted; absent: FailClosed. */
export const onStoreUnavailable = z
  .enum(['FailClosed', 'LocalShare'])
  .describe(
    'Where limits and budgets cannot be counted because Redis does not answer. FailClosed, also where it is absent: requests answer 503. LocalShare: each gateway pod admits its share of them.',
  )
  .optional()

const limits = z.object(limitFields)
/** The amount is in micro-units of the currency, or in tokens. */
const budget = z.object({ ...budgetFields, amount: z.int().min(0).max(MAX_AMOUNT), timeZone })

/** Rates and concurrency in a record. */
export const limitsField: z.ZodOptional<typeof limits> = limits.optional()
/** Budgets in a record, sorted by name. */
export const budgetsField: z.ZodOptional<z.ZodArray<typeof budget>> = z.array(budget).min(1).max(MAX_BUDGETS).optional()

/** Fields that a record with limits has beside its own. */
export const limitedFields = {
  limits: limitsField,
  budgets: budgetsField,
  onStoreUnavailable,
}

/** Rates and concurrency of a record. */
export type Limits = DataOf<typeof limits>
/** One budget of a record. */
export type BudgetRecord = DataOf<typeof budget>
/** The limits of a record. */
export type LimitedRecord = DataOf<z.ZodObject<typeof limitedFields>>

/**
 * The needs of a text. A reader that cannot enforce limits must not admit a key with limits. The record of a refused key has no such need:
 * every reader must read the refusal, and can apply it without the limits.
 */
export function needsOf(record: LimitedRecord & { readonly state: 'Active' | 'Suspended' | 'Revoked' }): readonly string[] {
  return record.state === 'Active' && mayRefuse(record) ? [LIMITS_FEATURE] : []
}

/** Budgets that only audit refuse nothing. */
function mayRefuse({ limits, budgets = [] }: LimitedRecord): boolean {
  return limits !== undefined || budgets.some(({ onExceeded }) => onExceeded === 'Block')
}

/** Whether the text of a key's record may name budgets, or an account whose plan may. Cheap: a rebuild asks this of a hundred thousand texts. */
export function mayHaveBudgets(text: string): boolean {
  return text.includes('"budgets":') || text.includes('"account":')
}

/** Whether two records of one key, or two states of one subject, have the same limits and budgets. */
export function hasSameLimits(
  a: Pick<LimitedRecord, 'limits' | 'budgets'> | undefined,
  b: Pick<LimitedRecord, 'limits' | 'budgets'>,
): boolean {
  return a === b || JSON.stringify([a?.limits, a?.budgets]) === JSON.stringify([b.limits, b.budgets])
}
