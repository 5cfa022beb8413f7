/** How far a new account is on its way to the first answer. Each step ticks by what the server says, in whatever way it was done. Pure. */
import type { Billing } from '../../server/page-data/billing.ts'
import type { KeyView } from '../../server/page-data/keys.ts'
import { microsOf } from '../micros.ts'

export type StepState = 'done' | 'now' | 'later'
export type StepName = 'verify' | 'topUp' | 'key' | 'call'

export interface Step {
  readonly name: StepName
  readonly state: StepState
}

/** Below this amount, the books refuse calls. */
const LEAST = 10_000n

type Money = Pick<Billing, 'isPrepaid' | 'balance' | 'movements'>
type Used = Pick<KeyView, 'lastUsedAt'>

/** Whether a call was ever made with a key of the account. From then on the steps are of no more use. */
export function hasCalled(billing: Pick<Billing, 'movements'>, keys: readonly Used[]): boolean {
  return billing.movements.some(({ type }) => type === 'Spend') || keys.some(({ lastUsedAt }) => lastUsedAt !== undefined)
}

/** The steps with their states: the first one that is not done is now. An account that does not pay in advance has nothing to top up. */
export function stepsOf(billing: Money, keys: readonly Used[]): readonly Step[] {
  const isDone: Readonly<Record<StepName, boolean>> = {
    verify: true, // nobody signs in before
    topUp: microsOf(billing.balance) >= LEAST,
    key: keys.length > 0,
    call: hasCalled(billing, keys),
  }
  const names: readonly StepName[] = billing.isPrepaid ? ['verify', 'topUp', 'key', 'call'] : ['verify', 'key', 'call']
  const now = names.find((name) => !isDone[name])
  return names.map((name) => ({ name, state: isDone[name] ? 'done' : name === now ? 'now' : 'later' }))
}
