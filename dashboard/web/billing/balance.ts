/** What a balance means: whether calls are answered, since when not, how much is missing, and how long the rest lasts. Pure. */
import type { Billing, Movement } from '../../server/page-data/billing.ts'
import { daysAfter, longDay } from '../days.ts'
import { microsOf, type Money, sumOf } from '../micros.ts'
import { clockTime } from '../times.ts'

/** Days before today from which the pace is taken. */
const PACE_DAYS = 7
/** From this number of days on, a forecast says nothing useful. */
const LONG_DAYS = 730
const DAY_LENGTH = '2026-11-24'.length
/** 0.01 in every currency: the books stop calls below this amount. */
const LEAST = 10_000n

/** Whether calls with the account's keys are refused because of the balance. A new account has had no money yet, and says so by its steps. */
export function isUsedUp({ isPrepaid, balance, movements }: Pick<Billing, 'isPrepaid' | 'balance' | 'movements'>): boolean {
  return isPrepaid && movements.length > 0 && microsOf(balance) < LEAST
}

/** The least amount after which calls are answered again, in whole cents. */
export function leastTopUp(balance: bigint, cent: bigint): bigint {
  const missing = LEAST - balance
  return missing <= 0n ? 0n : ((missing + cent - 1n) / cent) * cent
}

export interface UsedUp {
  readonly title: string
  readonly text: string
}

/** What the banner says while the balance stops calls. @returns undefined while it does not */
export function usedUpWords(billing: Pick<Billing, 'isPrepaid' | 'balance' | 'movements' | 'payments'>, money: Money): UsedUp | undefined {
  if (!isUsedUp(billing)) return undefined
  const balance = microsOf(billing.balance)
  const least = money.text(leastTopUp(balance, money.cent))
  const way = billing.payments.provider === 'stripe' ? `top up at least ${least}` : `ask your administrator for at least ${least}`
  if (balance >= 0n)
    return { title: 'All keys are stopped: the balance is used up', text: `Calls answer 402 until there is credit: ${way}.` }
  return {
    title: 'All keys are stopped: the balance is below zero',
    text: `${causeOf(billing.movements)} Calls answer 402 until the balance is above ${money.text(0n)}: ${way}.`,
  }
}

/** The movement that took the balance below zero, and that has kept it there. */
export function crossing(movements: readonly Movement[]): Movement | undefined {
  const above = movements.findIndex(({ balance }) => microsOf(balance) >= 0n)
  return movements[(above === -1 ? movements.length : above) - 1]
}

/** `Below zero since 24 November, 11:47 UTC.` @returns '' while the balance is not below zero */
export function sinceWords({ balance, movements }: Pick<Billing, 'balance' | 'movements'>): string {
  const time = microsOf(balance) < 0n ? (crossing(movements)?.time ?? '') : ''
  if (time.length < DAY_LENGTH) return ''
  const clock = time.length > DAY_LENGTH ? `, ${clockTime(new Date(time))}` : ''
  return `Below zero since ${longDay(time)}${clock}.`
}

function causeOf(movements: readonly Movement[]): string {
  switch (crossing(movements)?.type) {
    case 'Dispute':
      return 'Your bank took back a top-up.'
    case 'Refund':
      return 'A top-up was refunded.'
    case 'Spend':
      return 'The last calls cost more than was left.'
    default:
      return 'An adjustment took more than was left.'
  }
}

/**
 * `About 18 days at this week’s pace.` @returns '' where there is no pace or nothing left
 * @param today the day is not over, so the pace is that of the seven days before
 */
export function paceWords({ isPrepaid, balance, movements }: Pick<Billing, 'isPrepaid' | 'balance' | 'movements'>, today: string): string {
  const first = daysAfter(today, -PACE_DAYS)
  const days = movements.filter(({ type, time }) => type === 'Spend' && time.length === DAY_LENGTH && time >= first && time < today)
  const spent = -sumOf(days.map(({ amount }) => microsOf(amount)))
  const left = microsOf(balance)
  if (!isPrepaid || spent <= 0n || left < LEAST) return ''
  const count = (left * BigInt(PACE_DAYS)) / spent
  if (count >= LONG_DAYS) return 'More than two years at this week’s pace.'
  if (count === 0n) return 'Less than a day at this week’s pace.'
  return `About ${count} ${count === 1n ? 'day' : 'days'} at this week’s pace.`
}
