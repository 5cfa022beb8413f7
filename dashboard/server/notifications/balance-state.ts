/** How much of its balance an account has left, in words. Pure. */
import type { Account } from '#api/account.ts'
import { findCondition } from '#api/condition-list.ts'
import { parseSumAmount } from '#contract/values/signed-micros.ts'

/** From best to worst. */
export const BALANCE_STATES = ['Enough', 'Low', 'Exhausted'] as const
export type BalanceState = (typeof BALANCE_STATES)[number]

/**
 * As the operator decides it for its Events: Exhausted by the condition, Low below the amount of the setting.
 * @param lowBalance micro-units; undefined: no balance is low
 * @returns undefined for an account without a balance that can be used up, and before the operator has written one
 */
export function balanceStateOf({ spec, status }: Account, lowBalance: bigint | undefined): BalanceState | undefined {
  if (spec.billing !== 'Prepaid') return undefined
  if (findCondition(status?.conditions, 'BalanceExhausted') !== undefined) return 'Exhausted'
  const amount = parseSumAmount(status?.balance?.amount ?? '')
  if (amount === undefined) return undefined
  return lowBalance !== undefined && amount < lowBalance ? 'Low' : 'Enough'
}

/** Whether the balance has crossed a bound downwards. Before the first state nothing has. */
export function isWorse(now: BalanceState | undefined, before: BalanceState | undefined): boolean {
  return now !== undefined && before !== undefined && BALANCE_STATES.indexOf(now) > BALANCE_STATES.indexOf(before)
}
