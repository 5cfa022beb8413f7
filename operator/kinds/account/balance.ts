/** What the balance of an account means for its status and its Events. Pure. Amounts are bigints of micro-units. */
import type { Account, AccountStatus } from '#api/account.ts'
import { findCondition } from '#api/condition-list.ts'
import { rfc3339 } from '#contract/values/rfc3339.ts'
import { formatSumAmount, parseSumAmount } from '#contract/values/signed-micros.ts'

/** A balance below 0.01 is shown as used up; gateways decide exactly. */
const EXHAUSTED_BELOW = 10_000n

/** The balance of one account at one time. */
export interface BalanceReading {
  /** Credits minus spent. */
  readonly balance: bigint
  readonly spent: bigint
  readonly credits: bigint
  /** ms since 1970. */
  readonly atMs: number
}

/** What a balance is read for: the account, and two settings of the installation. */
export interface BalanceFacts {
  readonly account: Account
  /** Three letters. */
  readonly currency: string
  /** A balance below it is low; undefined: none is. */
  readonly lowBalance: bigint | undefined
}

/** The parts of the status about money. */
export type ShownBalance = Pick<AccountStatus, 'balance' | 'spent'>

/** undefined: nothing is refused, or the balance was never shown. */
type BalanceState = 'Enough' | 'Low' | 'Exhausted' | undefined

/** Events, one per crossing. */
export type BalanceEvent = 'BalanceLow' | 'BalanceExhausted' | 'BalanceRestored'

/** Notes of the Events. Tenants may read them, so they have no amount. */
export const BALANCE_NOTES: Readonly<Record<BalanceEvent, string>> = {
  BalanceLow: 'The balance of the account is below the amount that the installation calls low.',
  BalanceExhausted: 'The balance of the account is used up, and its keys answer 402 until a Credit is booked.',
  BalanceRestored: 'The account has a balance again, and its keys work.',
}

function isPrepaid({ spec }: Account): boolean {
  return spec.billing === 'Prepaid'
}

/**
 * The parts of the status that a reading makes; without a reading, the present ones. An account whose Credits are nothing shows a balance
 * only if it is prepaid.
 */
export function balanceStatus({ account, currency }: BalanceFacts, reading: BalanceReading | undefined): ShownBalance {
  if (reading === undefined) {
    const { balance, spent } = account.status ?? {}
    return { ...(balance !== undefined && { balance }), ...(spent !== undefined && { spent }) }
  }
  const balance = { amount: formatSumAmount(reading.balance), currency, asOf: rfc3339(reading.atMs) }
  return { ...((isPrepaid(account) || reading.credits !== 0n) && { balance }), spent: formatSumAmount(reading.spent) }
}

/** Whether the status lacks a part that a reading would make. */
export function lacksBalance(account: Account): boolean {
  const { balance, spent } = account.status ?? {}
  return spent === undefined || (isPrepaid(account) && balance === undefined)
}

/** Whether the status says, or must say, that the balance is used up. */
export function isExhausted(facts: BalanceFacts, shown: ShownBalance): boolean {
  return stateOf(facts, shown) === 'Exhausted'
}

/** The Event of a status that shows another state of the balance than the one before. A new account begins without one: that is not an Event. */
export function crossingOf(facts: BalanceFacts, next: ShownBalance): BalanceEvent | undefined {
  const [before, after] = [formerState(facts), stateOf(facts, next)]
  if (before === undefined || after === undefined || before === after) return undefined
  if (after === 'Exhausted') return 'BalanceExhausted'
  if (before === 'Exhausted') return 'BalanceRestored'
  return after === 'Low' ? 'BalanceLow' : undefined
}

/** How soon a reading must be in the status. `shown`: the reading that it has, if this process wrote it. */
export function urgencyOf(facts: BalanceFacts, reading: BalanceReading, shown: BalanceReading | undefined): 'AtOnce' | 'Later' | 'Never' {
  const { account } = facts
  const next = balanceStatus(facts, reading)
  const { balance, spent } = account.status ?? {}
  if (next.balance?.amount === balance?.amount && next.spent === spent) return 'Never'
  const isBooked = shown === undefined ? next.spent === spent : shown.credits !== reading.credits
  return isBooked || lacksBalance(account) || formerState(facts) !== stateOf(facts, next) ? 'AtOnce' : 'Later'
}

/** The state that the present status shows. */
function formerState(facts: BalanceFacts): BalanceState {
  const { conditions, balance } = facts.account.status ?? {}
  if (findCondition(conditions, 'BalanceExhausted') !== undefined) return 'Exhausted'
  if (balance === undefined) return findCondition(conditions, 'Ready')?.status === 'True' ? 'Enough' : undefined
  return isBelow(balance.amount, facts.lowBalance) ? 'Low' : 'Enough'
}

function stateOf({ account, lowBalance }: BalanceFacts, { balance }: ShownBalance): BalanceState {
  if (!isPrepaid(account) || balance === undefined) return undefined
  if (isBelow(balance.amount, EXHAUSTED_BELOW)) return 'Exhausted'
  return isBelow(balance.amount, lowBalance) ? 'Low' : 'Enough'
}

function isBelow(amount: string, bound: bigint | undefined): boolean {
  // a text of another form counts as 0: the next reading replaces it
  return bound !== undefined && (parseSumAmount(amount) ?? 0n) < bound
}
