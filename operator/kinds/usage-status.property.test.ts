import fc from 'fast-check'
import { test } from 'vitest'
import { accountStatus } from '#api/account.ts'
import { apiKeyStatus } from '#api/apikey.ts'
import { type BudgetRecord, MAX_AMOUNT } from '#contract/records/limits-record.ts'
import { usageStatus, usedColumn } from './usage-status.ts'

const amount = fc.oneof(fc.constantFrom(0, 1, MAX_AMOUNT), fc.nat({ max: MAX_AMOUNT }))
const budget = fc.record({
  name: fc.constantFrom('a', 'plan/b', 'c', 'plan/d'),
  unit: fc.constantFrom('Currency', 'Tokens'),
  amount,
  window: fc.constantFrom('Day', 'Week', 'Month', 'Lifetime'),
  timeZone: fc.constant('UTC'),
  onExceeded: fc.constantFrom('Block', 'Audit'),
}) satisfies fc.Arbitrary<BudgetRecord>
const budgets = fc.uniqueArray(budget, { selector: ({ name }) => name })

test('every status of any spend of any budget is one that the API server accepts, before and after any edit', () => {
  fc.assert(
    fc.property(
      budgets,
      budgets,
      fc.array(fc.tuple(amount, amount), { minLength: 4, maxLength: 4 }),
      fc.nat(),
      (former, budgets, spends, ms) => {
        const reading = (some: readonly BudgetRecord[]) => ({
          budgets: some.map(({ name, unit, window }, at) => {
            const [spent, unsettled] = spends[at] ?? [0, 0]
            return { budget: name, unit, window, spent: spent + unsettled, windowStartMs: ms }
          }),
          lastUsedMs: ms,
        })
        const before = usageStatus(undefined, former, reading(former))
        for (const shown of [before, usageStatus(before, budgets, reading(budgets)), usageStatus(before, budgets, undefined)]) {
          const used = usedColumn(shown)
          apiKeyStatus.parse({ ...shown, summary: { programmed: '2/2', models: '*', ...(used !== undefined && { used }) } })
          accountStatus.parse(shown)
        }
      },
    ),
  )
})
