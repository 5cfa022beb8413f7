/** Limits and budgets in manifests: their schemas (the fields are those of the records), and the rules that no single field can express. Shared by every kind with limits. */
import { z } from 'zod'
import { budgetFields, limitFields, MAX_BUDGETS } from '#contract/records/limits-record.ts'
import { mapOf } from './bounded.ts'
import { DECIMAL_AMOUNT, TOKEN_AMOUNT } from './decimal-amount.ts'
import type { Rule } from './rule.ts'
import { shownText } from './manifest-error.ts'

/** Rates and concurrency. A rule requires at least one field. */
export const limitsSchema = z.strictObject(limitFields)

const budget = z.strictObject(budgetFields)

/** The budgets of one object, by name. */
export const budgetsSchema = mapOf(budget, 'name', { max: MAX_BUDGETS })

/** Limits of a manifest. */
export type LimitsSpec = z.output<typeof limitsSchema>
/** One budget of a manifest. */
export type BudgetSpec = z.output<typeof budget>

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
