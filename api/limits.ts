/** Limits and budgets in manifests: their schemas (the fields are those of the records), and the rules that no single field can express. Shared by every kind with limits. */
import { z } from 'zod'
import { budgetFields, limitFields, MAX_BUDGET_NAME, MAX_BUDGETS } from '#contract/records/limits-record.ts'
import { mapOf, timestamp, whole } from './bounded.ts'
import { DECIMAL_AMOUNT, TOKEN_AMOUNT, ZERO_AMOUNT } from './decimal-amount.ts'
import type { Rule } from './rule.ts'
import { shownText } from './manifest-error.ts'

/** Rates and concurrency. A rule requires at least one field. */
export const limitsSchema = z.strictObject(limitFields)

const budget = z.strictObject(budgetFields)

/** The budgets of one object, by name. */
export const budgetsSchema = mapOf(budget, 'name', { max: MAX_BUDGETS })

/** Budgets of a plan are shown as `plan/<name>`. */
const MAX_PLAN_BUDGET_NAME = 'plan/'.length + MAX_BUDGET_NAME

/** One budget as the status shows it. */
export const usage = z.object({
  budget: z.string().max(MAX_PLAN_BUDGET_NAME).describe('Name of the budget.'),
  windowStartTime: timestamp().describe('When the window began; absent for a Lifetime budget.').optional(),
  used: z.string().max(24).describe('What was spent in this window, in the unit of the budget.'),
  remaining: z.string().max(24).describe('What may still be spent in it.'),
  percent: z.int().min(0).describe('The spent part of the amount in per cent, rounded down.'),
  announcedPercent: whole(0, 100).describe('The highest threshold (80 or 100) that an Event has announced in this window; 0: none.'),
})

const owner = z.enum(['key', 'account', 'plan'])

/** The effective limits and budgets of one object, with their owners. */
export const effectiveLimits = z.object({
  limits: mapOf(
    z.object({
      limit: z.enum(Object.keys(limitFields) as [keyof typeof limitFields]).describe('Name of the limit.'),
      value: z.int().min(0).describe('The limit in effect.'),
      owner: owner.describe('Whose limit it is.'),
    }),
    'limit',
    { max: Object.keys(limitFields).length },
  )
    .describe('Rates and concurrency.')
    .optional(),
  budgets: mapOf(
    z.object({
      budget: z.string().max(MAX_PLAN_BUDGET_NAME).describe('Name of the budget; plan/<name> for a budget of the plan.'),
      owner: owner.describe('Whose budget it is.'),
    }),
    'budget',
    { max: 2 * MAX_BUDGETS },
  )
    .describe('Budgets, which all count.')
    .optional(),
})

/** Limits of a manifest. */
export type LimitsSpec = z.output<typeof limitsSchema>
/** One budget of a manifest. */
export type BudgetSpec = z.output<typeof budget>
/** Effective limits in a status. */
export type EffectiveStatus = z.infer<typeof effectiveLimits>
/** Usage of one budget in a status. */
export type UsageStatus = z.infer<typeof usage>

const LIMITS = Object.keys(limitFields)

/** Rules of `limits`. */
export const limitsRules: readonly Rule<LimitsSpec>[] = [
  {
    id: 'some-limit',
    cel: LIMITS.map((limit) => `has(self.${limit})`).join(' || '),
    reason: 'limits is empty and would limit nothing',
    remedy: `set ${LIMITS.slice(0, -1).join(', ')} or ${LIMITS.at(-1)}, or remove limits`,
    holds: (self) => Object.values(self).some((limit) => limit !== undefined),
  },
]

/** The remedy for an amount with a sign of a currency, separators or blanks: the amount without them. */
function plainAmount(text: string): string | undefined {
  const plain = text.replaceAll(/[\s,_']|\p{Sc}|^[A-Za-z]{3}|[A-Za-z]{3}$/gu, '')
  if (plain === text || !new RegExp(DECIMAL_AMOUNT).test(plain)) return undefined
  return `write "${plain.includes('.') ? plain : `${plain}.00`}"`
}

/** Rules of each entry of `budgets`. */
export const budgetRules: readonly Rule<BudgetSpec>[] = [
  {
    id: 'amount-of-currency',
    cel: `self.unit != 'Currency' || self.amount.matches(r'${DECIMAL_AMOUNT}')`,
    field: '.amount',
    reason: 'amount is not a decimal number with at most 9 digits before the point and 6 after it',
    celValues: `'"' + self.amount + '"'`,
    remedy: 'write it like "25.00", without currency, sign, exponent or separators',
    values: ({ amount }) => shownText(amount),
    suggests: ({ amount }) => plainAmount(amount),
    holds: (self) => self.unit !== 'Currency' || new RegExp(DECIMAL_AMOUNT).test(self.amount),
  },
  {
    id: 'amount-above-zero',
    cel: `self.unit != 'Currency' || !self.amount.matches(r'${ZERO_AMOUNT}')`,
    field: '.amount',
    reason: 'amount is zero, so the budget would let nothing through',
    remedy: 'write an amount above zero, or state: Suspended',
    holds: (self) => self.unit !== 'Currency' || !new RegExp(ZERO_AMOUNT).test(self.amount),
  },
  {
    id: 'amount-of-tokens',
    cel: `self.unit != 'Tokens' || self.amount.matches(r'${TOKEN_AMOUNT}')`,
    field: '.amount',
    reason: 'amount is not a whole number of tokens from 1 to 999999999999999',
    celValues: `'"' + self.amount + '"'`,
    remedy: 'write it like "1000000", without point, sign, exponent or separators',
    values: ({ amount }) => shownText(amount),
    holds: (self) => self.unit !== 'Tokens' || new RegExp(TOKEN_AMOUNT).test(self.amount),
  },
  {
    id: 'no-zone-of-lifetime',
    cel: "self.window != 'Lifetime' || !has(self.timeZone)",
    field: '.timeZone',
    reason: 'timeZone is set with window: Lifetime, which never ends',
    remedy: 'remove timeZone, or choose the window Day, Week or Month',
    holds: (self) => self.window !== 'Lifetime' || self.timeZone === undefined,
  },
]
