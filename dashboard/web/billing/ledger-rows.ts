/** The ledger as the page lists it: what each movement was, in words, and the sum of all. Pure. */
import type { Billing, Movement, PaymentProvider } from '../../server/page-data/billing.ts'
import { daysAfter, longDay, monthName, monthRange, shortDay, withYear } from '../days.ts'
import { microsOf, sumOf } from '../micros.ts'
import { clockTime } from '../times.ts'

export interface LedgerRow {
  /** `24 Nov`; `Oct` for the spend of a month; '' where there is no day. */
  readonly date: string
  readonly title: string
  /** A second line; '' where there is nothing more to say. */
  readonly note: string
  /** Micro-units. */
  readonly amount: bigint
  /** After the movement. */
  readonly balance: bigint
  /** Path of the page that leads to the provider's receipt; absent where there is none. */
  readonly receipt?: string
}

const DAY_LENGTH = '2026-11-24'.length
const MONTH_LENGTH = '2026-10'.length
const TITLES: Readonly<Record<Exclude<Movement['type'], 'Spend' | 'Dispute'>, string>> = {
  TopUp: 'Top-up',
  Grant: 'Credit granted',
  Refund: 'Refund',
  Adjustment: 'Adjustment',
}

/** @returns the rows, newest first, as the movements are */
export function ledgerRows({
  movements,
  asOf,
  payments: { provider },
}: Pick<Billing, 'movements' | 'asOf' | 'payments'>): readonly LedgerRow[] {
  const today = asOf.slice(0, DAY_LENGTH)
  const firstDay = oldestSpendDay(movements)
  return movements.map((movement) => ({
    date: dateOf(movement.time, today),
    ...wordsOf(movement, { today, firstDay, asOf }),
    amount: microsOf(movement.amount),
    balance: microsOf(movement.balance),
    ...receiptOf(movement, provider),
  }))
}

/** Micro-units. */
export function ledgerSum(movements: readonly Movement[]): bigint {
  return sumOf(movements.map(({ amount }) => microsOf(amount)))
}

interface Times {
  readonly today: string
  /** The oldest day whose spend is a row of its own; '' if there is none. */
  readonly firstDay: string
  readonly asOf: string
}

function wordsOf(movement: Movement, times: Times): Pick<LedgerRow, 'title' | 'note'> {
  const { type, reference, amount } = movement
  if (type === 'Spend') return spendWords(movement.time, times)
  const title = type === 'Dispute' ? (amount.startsWith('-') ? 'Dispute opened by the bank' : 'Dispute decided for you') : TITLES[type]
  return { title, note: reference }
}

/** The receipt of a payment also says what was refunded. */
function receiptOf({ type, reference }: Movement, provider: PaymentProvider): Pick<LedgerRow, 'receipt'> {
  return provider === 'stripe' && type === 'TopUp' && reference.startsWith('pi_') ? { receipt: `/receipts/${reference}` } : {}
}

function spendWords(time: string, { today, firstDay, asOf }: Times): Pick<LedgerRow, 'title' | 'note'> {
  if (time === '') return { title: 'Usage, earlier or not itemised', note: '' }
  if (time.length === MONTH_LENGTH) return { title: monthTitle(time, firstDay, today), note: '' }
  return { title: 'Usage', note: time === today ? `So far, as of ${clockTime(new Date(asOf))}` : '' }
}

/** A month of which the last days have rows of their own says which days it has. */
function monthTitle(month: string, firstDay: string, today: string): string {
  const { from, to } = monthRange(month)
  const isWhole = !firstDay.startsWith(month)
  if (isWhole) return `Usage in ${withYear(monthName(month), month, today)}`
  const last = daysAfter(firstDay, -1)
  return last <= from || last > to ? `Usage, ${longDay(from)}` : `Usage, ${Number(from.slice(8))}–${longDay(last)}`
}

function oldestSpendDay(movements: readonly Movement[]): string {
  const days = movements.filter(({ type, time }) => type === 'Spend' && time.length === DAY_LENGTH).map(({ time }) => time)
  return days.toSorted()[0] ?? ''
}

function dateOf(time: string, today: string): string {
  if (time === '') return ''
  if (time.length === MONTH_LENGTH) return withYear(monthName(time).slice(0, 3), time, today)
  return withYear(shortDay(time), time, today)
}
