/** Usage and billing of the fake dashboard: calls of three keys in the last 90 days, and the ledger that follows from them. */
import type { Billing, Movement, TopUpState } from '../../dashboard/server/page-data/billing.ts'
import type { Usage, UsageRow } from '../../dashboard/server/page-data/usage.ts'

const DAY_MS = 86_400_000
const MODELS = [
  { name: 'llama-3.3-70b', cost: 1_600_000, tokens: 1_800_000 },
  { name: 'qwen-2.5-coder-32b', cost: 900_000, tokens: 1_900_000 },
  { name: 'gpt-oss-120b', cost: 800_000, tokens: 1_300_000 },
  { name: 'llama-3.1-8b', cost: 190_001, tokens: 2_000_000 },
]
const KEYS = [
  ['k-1', 'checkout-bot production'],
  ['k-2', 'docs-search'],
  ['k-9', 'leaked'],
] as const

export const dayBefore = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)

/** Rows of one day: different on each day, and the same at each call. */
function rowsOf(days: number): readonly UsageRow[] {
  return MODELS.flatMap(({ name: model, cost, tokens }, at) => {
    const [key, keyName] = KEYS[(at + days) % KEYS.length] ?? KEYS[0]
    const part = 3 + ((days * 7 + at * 5) % 11)
    return {
      ...{ day: dayBefore(days), model, key, keyName },
      ...{ requests: 40 * part, failed: at, refused: part, refusals: { model: 0, rate: part - 1, budget: 1, other: 0 } },
      ...{ inputTokens: tokens * part, cachedInputTokens: Math.floor((tokens * part) / 3), outputTokens: Math.floor((tokens * part) / 5) },
      ...{ cost: decimal(BigInt(cost * part) / 4n), estimated: at === 2 ? 1 : 0 },
    }
  })
}

function decimal(micros: bigint): string {
  const digits = String(micros < 0n ? -micros : micros).padStart(7, '0')
  return `${micros < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`
}

const CALLS: readonly UsageRow[] = Array.from({ length: 90 }, (_, index) => rowsOf(89 - index)).flat()

/** Exact, by the digits of the amounts. */
function micros(amount: string): bigint {
  const [units = '0', decimals = ''] = amount.replace('-', '').split('.')
  const sum = BigInt(units + decimals.padEnd(6, '0'))
  return amount.startsWith('-') ? -sum : sum
}

/** With the balance after each. @param movements the oldest first @returns the newest first */
export function withBalances(movements: readonly Omit<Movement, 'balance'>[]): readonly Movement[] {
  let balance = 0n
  return movements.map((movement) => ({ ...movement, balance: decimal((balance += micros(movement.amount))) })).toReversed()
}

function spendOf(days: number): bigint {
  return rowsOf(days).reduce((sum, { cost }) => sum + micros(cost), 0n)
}

const CREDITS = [
  { time: `${dayBefore(60)}T10:00:00Z`, type: 'Grant', id: 'manual-1', reference: 'Welcome credit', amount: '10.00' },
  { time: `${dayBefore(40)}T10:00:00Z`, type: 'TopUp', id: 'stripe-1', reference: 'pi_3Qx', amount: '150.00' },
  { time: `${dayBefore(20)}T10:00:00Z`, type: 'Refund', id: 'stripe-2', reference: 're_3Qx', amount: '-25.00' },
] as const
const SPEND = Array.from({ length: 12 }, (_, index) => ({
  ...({ time: dayBefore(11 - index), type: 'Spend', id: '', reference: '' } as const),
  amount: decimal(-spendOf(11 - index)),
}))

/** An account in use. @param more what differs @param movements the oldest first */
export function billing(more: Partial<Billing> = {}, movements: readonly Omit<Movement, 'balance'>[] = [...CREDITS, ...SPEND]): Billing {
  const listed = withBalances(movements)
  return {
    ...{ account: 'u-4kq7', currency: 'EUR', isPrepaid: true, balance: listed[0]?.balance ?? '0.00', spentThisMonth: '97.25' },
    ...{ asOf: new Date().toISOString(), incomplete: [], movements: listed },
    payments: { provider: 'stripe', amounts: ['10.00', '25.00', '50.00', '100.00'], least: '5.00', most: '1000.00' },
    ...more,
  }
}

/** As `billing`, after the bank took a top-up back. */
export function billingBelowZero(): Billing {
  const dispute = { time: new Date().toISOString(), type: 'Dispute', id: 'stripe-3', reference: 'dp_3Qx', amount: '-150.00' } as const
  return billing({}, [...CREDITS, ...SPEND, dispute])
}

export class FakeMoney {
  billing: Billing = billing({}, [])
  rows: readonly UsageRow[] = []
  incomplete: readonly string[] = []
  /** How the payment stands from which a person comes back. */
  topUp: TopUpState['state'] = 'open'

  /** A new account: no credit and no call. */
  reset(): void {
    Object.assign(this, { billing: billing({}, []), rows: [], incomplete: [], topUp: 'open' })
  }

  /** As an account that has been in use for 90 days. */
  use(): void {
    Object.assign(this, { billing: billing(), rows: CALLS })
  }

  /** @param search the query of the request @returns undefined for a route that is not of money; text: a file */
  answer(route: string, search: URLSearchParams): object | string | undefined {
    switch (route) {
      case 'GET /api/usage':
        return this.#usage(search.get('from') ?? '', search.get('to') ?? '')
      case 'GET /api/usage.csv':
        return `day,model\r\n# ${search.toString()}\r\n`
      case 'GET /api/billing':
        return this.billing
      case 'GET /api/billing/ledger.csv':
        return 'time,type\r\n'
      case 'POST /api/billing/top-up':
        return { url: '/paying' }
      case 'POST /api/billing/top-up/check':
        return { state: this.topUp }
      default:
        return undefined
    }
  }

  #usage(from: string, to: string): Usage {
    const rows = this.rows.filter(({ day }) => from <= day && day <= to)
    const asOf = this.rows.length > 0 ? { asOf: new Date().toISOString() } : {}
    return { from, to, ...asOf, incomplete: this.incomplete, currency: 'EUR', rows }
  }
}
