/** The balance of an account and its movements as the page shows them: JSON and CSV. Pure. */
import type { Account } from '#api/account.ts'
import { formatSumAmount, parseSumAmount } from '#contract/values/signed-micros.ts'
import type { Billing, Movement } from '../page-data/billing.ts'
import { csvOf } from './csv.ts'
import type { OperatorLedger } from './operator-usage.ts'
import { type PaymentSettings, paymentsView } from './payments.ts'

export interface BillingFacts {
  readonly account: Account
  /** undefined: the operator has not accepted the account yet, so that it has no movement. */
  readonly ledger: OperatorLedger | undefined
  readonly currency: string
  readonly payments: PaymentSettings
  /** ms since 1970 */
  readonly nowMs: number
}

/** An account before its first movement. */
function noMovements({ currency, nowMs }: Pick<BillingFacts, 'currency' | 'nowMs'>): OperatorLedger {
  return { currency, asOf: new Date(nowMs).toISOString(), balance: '0.00', incomplete: [], rows: [] }
}

export function billingOf(facts: BillingFacts): Billing {
  const { account, payments } = facts
  const ledger = facts.ledger ?? noMovements(facts)
  const { name } = account.metadata
  const movements = movementsOf(ledger)
  return {
    account: name,
    currency: ledger.currency,
    isPrepaid: account.spec.billing === 'Prepaid',
    balance: ledger.balance,
    spentThisMonth: spentIn(ledger.asOf.slice(0, 'YYYY-MM'.length), movements),
    asOf: ledger.asOf,
    incomplete: ledger.incomplete,
    movements: movements.toReversed(),
    payments: paymentsView(payments, name, movements.filter(({ id }) => id !== '').length),
  }
}

/** The oldest first, each with the balance after it. */
function movementsOf({ rows }: OperatorLedger): readonly Movement[] {
  let balance = 0n
  return rows.map((row) => {
    balance += micros(row.amount)
    return { ...row, balance: formatSumAmount(balance) }
  })
}

/** @param month `2026-11` */
function spentIn(month: string, movements: readonly Movement[]): string {
  const spent = movements.filter(({ type, time }) => type === 'Spend' && time.startsWith(month))
  return formatSumAmount(-spent.reduce((sum, { amount }) => sum + micros(amount), 0n))
}

/** The form of an amount was checked when the answer was read. */
function micros(amount: string): bigint {
  return parseSumAmount(amount) ?? 0n
}

const COLUMNS = ['time', 'type', 'id', 'reference', 'amount', 'balance'] as const

/** The oldest movement first. */
export function ledgerCsvOf(ledger: OperatorLedger | undefined, currency: string): string {
  const movements = ledger ? movementsOf(ledger) : []
  const lines = movements.map((one) => [...COLUMNS.map((column) => one[column]), ledger?.currency ?? currency])
  return csvOf([...COLUMNS, 'currency'], lines)
}
