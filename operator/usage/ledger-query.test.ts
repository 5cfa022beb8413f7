import { describe, expect, test } from 'vitest'
import { countsOf } from '#contract/usage/usage-report.ts'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import type { CreditEntry } from '../shards/credit-entry.ts'
import type { ClosedUsage, OpenUsage, UsageRows } from '../shards/usage-entry.ts'
import { dayOf, monthOf, noClosedUsage, noOpenUsage } from './usage-book.ts'
import { type LedgerAnswer, ledgerCsvOf, ledgerOf, ledgerRefusal, NOT_ITEMISED } from './ledger-query.ts'
import type { AccountLedger } from './ledger-reader.ts'

const NOW = Date.UTC(2026, 10, 26, 12)
const TODAY = dayOf(NOW)

function credit(id: string, amount: string, more: Partial<CreditEntry> = {}): CreditEntry {
  const micros = parseSignedAmount(amount)
  if (micros === undefined) throw new RangeError(amount)
  return { id, account: 'acme', micros, type: 'TopUp', time: '2026-11-20T10:00:00Z', reference: '', ...more }
}

/** Rows of one period, one for each cost in micro-units. */
const rows = (...costs: readonly number[]): UsageRows =>
  new Map(costs.map((costMicros, at) => [`key-${at}`, new Map([['llama', countsOf({ requests: 1, costMicros })]])]))
const open = (days: Readonly<Record<number, UsageRows>>): OpenUsage => ({
  ...noOpenUsage('acme'),
  days: new Map(Object.entries(days).map(([day, of]) => [Number(day), of])),
})
const closed = (part: Partial<ClosedUsage>): ClosedUsage => ({ ...noClosedUsage('acme'), ...part })

/** @param spent micro-units by period and process */
function ledger(
  credits: readonly CreditEntry[],
  spent: Readonly<Record<string, number>> = {},
  more: { closedSpend?: bigint; usage?: Partial<AccountLedger['usage']> } = {},
): LedgerAnswer {
  const book = { openFrom: 0, closedSpend: more.closedSpend ?? 0n, spent: new Map(Object.entries(spent)) }
  return ledgerOf('acme', { book, credits, usage: { open: undefined, closed: undefined, ...more.usage } }, { currency: 'EUR', nowMs: NOW })
}

/** Exact, for sums of any size. */
function microsIn(amount: string): bigint {
  const [, sign = '', units = '', decimals = ''] = /^(-?)(\d+)(?:\.(\d{1,6}))?$/.exec(amount) ?? []
  expect(amount).toMatch(/^-?\d+(\.\d{1,6})?$/)
  return BigInt(`${sign}${units}${decimals.padEnd(6, '0')}`)
}
const sumOf = ({ rows: all }: LedgerAnswer): bigint => all.reduce((sum, { amount }) => sum + microsIn(amount), 0n)

describe('the ledger of an account', () => {
  test('has every Credit with its time, type, id and reference, and the spend of each day, oldest first', () => {
    const answer = ledger(
      [credit('pay-2', '25', { time: '2026-11-26T08:00:00Z' }), credit('pay-1', '10.5', { type: 'Grant', reference: 'welcome' })],
      { '1:a': 3_000_000 },
      { usage: { open: open({ [TODAY]: rows(1_000_000), [TODAY - 1]: rows(1_500_000, 500_000) }) } },
    )
    expect(answer.rows.map(({ time, type, id, reference }) => [time, type, id, reference])).toEqual([
      ['2026-11-20T10:00:00Z', 'Grant', 'pay-1', 'welcome'],
      ['2026-11-25', 'Spend', '', ''],
      ['2026-11-26', 'Spend', '', ''],
      ['2026-11-26T08:00:00Z', 'TopUp', 'pay-2', ''],
    ])
    expect(answer.rows.map(({ amount }) => microsIn(amount))).toEqual([10_500_000n, -2_000_000n, -1_000_000n, 25_000_000n])
    expect(answer).toMatchObject({ account: 'acme', currency: 'EUR', asOf: '2026-11-26T12:00:00.000Z', incomplete: [] })
    expect([answer.balance, answer.credits, answer.spent].map(microsIn)).toEqual([32_500_000n, 35_500_000n, 3_000_000n])
  })

  test('has one row for spend that belongs to no kept day or month, and its amounts add up to the balance', () => {
    const answer = ledger(
      [credit('pay-1', '10')],
      { '4:a': 2_000_000, '4:b': 500_000, '5:a': 1 },
      {
        closedSpend: 9_000_000n,
        usage: {
          open: open({ [TODAY]: rows(250_000) }),
          closed: closed({
            through: TODAY - 2,
            days: new Map([[TODAY - 2, rows(750_000)]]),
            months: new Map([[monthOf(TODAY - 60), rows(2)]]),
          }),
        },
      },
    )
    expect(answer.rows[0]).toMatchObject({ time: '', type: 'Spend', id: '', reference: NOT_ITEMISED })
    expect(answer.rows.map(({ time, amount }) => [time, microsIn(amount)])).toEqual([
      ['', -10_499_999n],
      ['2026-09', -2n],
      ['2026-11-20T10:00:00Z', 10_000_000n],
      ['2026-11-24', -750_000n],
      ['2026-11-26', -250_000n],
    ])
    expect([sumOf(answer), microsIn(answer.balance)]).toEqual([-1_500_001n, -1_500_001n])
  })

  test('counts no day twice that is still open and closed already', () => {
    const both = { open: open({ [TODAY - 2]: rows(7) }), closed: closed({ through: TODAY - 2, days: new Map([[TODAY - 2, rows(7)]]) }) }
    expect(ledger([], { '1:a': 7 }, { usage: both }).rows.map(({ time }) => time)).toEqual(['2026-11-24'])
  })

  test('says so with a positive row if usage has counted what the books do not have yet', () => {
    const answer = ledger([], { '1:a': 5 }, { usage: { open: open({ [TODAY]: rows(8) }) } })
    expect(answer.rows.map(({ reference, amount }) => [reference, microsIn(amount)])).toEqual([
      [NOT_ITEMISED, 3n],
      ['', -8n],
    ])
    expect(sumOf(answer)).toBe(-5n)
  })

  test('is exact beyond 2^53 micro-units, and for the smallest amount', () => {
    const many = Array.from({ length: 20 }, (_, at) => credit(`pay-${at}`, '999999999.999999'))
    const answer = ledger(
      [...many, credit('fix', '-0.000001', { type: 'Adjustment' })],
      { '1:a': 999_999_999_999_999 },
      { closedSpend: 1n },
    )
    expect(microsIn(answer.balance)).toBe(20n * 999_999_999_999_999n - 1n - 999_999_999_999_999n - 1n)
    expect(sumOf(answer)).toBe(microsIn(answer.balance))
  })

  test('of an account that never moved has no rows', () => {
    expect(ledger([])).toMatchObject({ rows: [], incomplete: [] })
    expect(microsIn(ledger([]).balance)).toBe(0n)
  })

  test('names the days that are itemised in part', () => {
    const usage = { open: { ...open({}), incomplete: [TODAY] }, closed: closed({ incomplete: [TODAY - 9, TODAY] }) }
    expect(ledger([], {}, { usage }).incomplete).toEqual(['2026-11-17', '2026-11-26'])
  })
})

describe('the ledger as CSV', () => {
  test('has a header, amounts that a spreadsheet adds up, and no text that it runs', () => {
    const csv = ledgerCsvOf(ledger([credit('pay-1', '-2.5', { type: 'Refund', reference: '=HYPERLINK("x")' })]))
    const [header, row, end] = csv.split('\r\n')
    expect([header, end]).toEqual(['time,type,id,reference,amount', ''])
    expect(row).toMatch(/^2026-11-20T10:00:00Z,Refund,pay-1,"'=HYPERLINK\(""x""\)",-2\.50?$/)
  })
})

test.each([
  ['', undefined],
  ['format=csv', undefined],
  ['from=2026-11-01', '"from" is not a parameter of the ledger, which always has all movements'],
])('a question with the parameters `%s` is refused: %s', (search, why) => {
  expect(ledgerRefusal(new URLSearchParams(search))).toBe(why)
})
