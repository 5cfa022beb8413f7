/** Limits and budgets in manifests: their schemas, and the rules that no single field can express. Shared by every kind with limits. */
import { z } from 'zod'
import { mapOf } from './bounded.ts'
import { DECIMAL_AMOUNT, TOKEN_AMOUNT } from './decimal-amount.ts'
import { DNS_LABEL } from './metadata.ts'
import type { Rule } from './rule.ts'
import { shownText } from './shown-value.ts'
import { TIME_ZONE_NAME } from '#contract/values/budget-window.ts'

/** Maximum number of budgets of one object. */
export const MAX_BUDGETS = 4
/** Longest name of a budget. */
export const MAX_BUDGET_NAME = 32

/** Rates and concurrency. All fields are optional; a rule requires at least one. */
export const limitsSchema = z.strictObject({
  requestsPerMinute: z
    .int()
    .min(1)
    .max(1_000_000_000)
    .describe('Most requests that are admitted in any 60 seconds, over all gateway pods together.')
    .optional(),
  tokensPerMinute: z
    .int()
    .min(1)
    .max(1_000_000_000_000)
    .describe('Most tokens, of prompts and answers together, in any 60 seconds, over all gateway pods together.')
    .optional(),
  maxConcurrentRequests: z
    .int()
    .min(1)
    .max(1_000_000)
    .describe('Most requests that run at the same time, over all gateway pods together.')
    .optional(),
})

const budget = z.strictObject({
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
      'Most that may be spent in a window. Currency: a decimal number with at most 9 digits before and 6 behind the point. Tokens: a whole number of at most 15 digits. Another amount keeps what was spent.',
    ),
  unit: z
    .enum(['Currency', 'Tokens'])
    .describe('Currency: the money that pricing of the models asks for. Tokens: tokens of prompts and answers.'),
  window: z
    .enum(['Lifetime', 'Day', 'Week', 'Month'])
    .describe('When the spend of the budget starts again at zero: never, at midnight, on Monday, or on the first.'),
  timeZone: z
    .string()
    .regex(new RegExp(TIME_ZONE_NAME))
    .max(64)
    .describe('IANA time zone of the window, such as Europe/Berlin. UTC where it is absent. Not with window Lifetime.')
    .optional(),
  onExceeded: z
    .enum(['Block', 'Audit'])
    .describe('Block: requests beyond the amount are refused. Audit: they are admitted, and the status shows what was spent.')
    .default('Block'),
})

/** The budgets of one object, by name. */
export const budgetsSchema = mapOf(budget, 'name', { max: MAX_BUDGETS })

/** Limits of a manifest. */
export type LimitsSpec = z.output<typeof limitsSchema>
/** One budget of a manifest. */
export type BudgetSpec = z.output<typeof budget>

/** Rules of `limits`. */
export const limitsRules: readonly Rule<LimitsSpec>[] = [
  {
    id: 'some-limit',
    cel: 'has(self.requestsPerMinute) || has(self.tokensPerMinute) || has(self.maxConcurrentRequests)',
    reason: 'limits is empty and would limit nothing',
    remedy: 'set requestsPerMinute, tokensPerMinute or maxConcurrentRequests, or remove limits',
    holds: (self) => Object.values(self).some((limit) => limit !== undefined),
  },
]

/** Rules of each entry of `budgets`. */
export const budgetRules: readonly Rule<BudgetSpec>[] = [
  {
    id: 'amount-of-currency',
    cel: `self.unit != 'Currency' || self.amount.matches(r'${DECIMAL_AMOUNT}')`,
    field: '.amount',
    reason: 'amount is no decimal number of at most 9 digits before and 6 behind the point',
    celValues: `'"' + self.amount + '"'`,
    remedy: 'write it like "25.00", without sign, exponent or separators',
    values: ({ amount }) => shownText(amount),
    holds: (self) => self.unit !== 'Currency' || new RegExp(DECIMAL_AMOUNT).test(self.amount),
  },
  {
    id: 'amount-of-tokens',
    cel: `self.unit != 'Tokens' || self.amount.matches(r'${TOKEN_AMOUNT}')`,
    field: '.amount',
    reason: 'amount is no whole number of tokens from 1 to 999999999999999',
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
