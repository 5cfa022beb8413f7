/** What a person may top up, and what the way to the payment provider and back has led to. Pure. */
import type { Billing } from '../../server/page-data/billing.ts'
import { microsOf, type Money, sumOf } from '../micros.ts'
import { leastTopUp } from './balance.ts'

/** Time in which a top-up counts as the one from which a person comes back. */
const JUST_MS = 600_000

export interface Offer {
  /** Decimal, as the server has them. */
  readonly amounts: readonly string[]
  /** The one that is picked at first; '' if there is none. */
  readonly usual: string
  /** Whether no amount lets calls pass again. */
  readonly isTooSmall: boolean
}

/** The amounts after which calls are answered; all of them where no amount is enough. */
export function offerOf({ isPrepaid, balance, payments }: Pick<Billing, 'isPrepaid' | 'balance' | 'payments'>, cent: bigint): Offer {
  const least = isPrepaid ? leastTopUp(microsOf(balance), cent) : 0n
  const enough = payments.amounts.filter((amount) => microsOf(amount) >= least)
  const amounts = enough.length > 0 ? enough : payments.amounts
  const usual = (enough.length < payments.amounts.length ? amounts[0] : amounts[Math.floor(amounts.length / 2)]) ?? ''
  return { amounts, usual: enough.length > 0 ? usual : (amounts.at(-1) ?? ''), isTooSmall: enough.length === 0 && amounts.length > 0 }
}

export type Return = 'paid' | 'cancelled'

/** With what the provider has sent the person back. @param search the query of the URL @returns undefined: the person comes from elsewhere */
export function returnOf(search: string): Return | undefined {
  const outcome = new URLSearchParams(search).get('top-up')
  return outcome === 'paid' || outcome === 'cancelled' ? outcome : undefined
}

export interface Notice {
  readonly look: 'info' | 'ok'
  readonly title: string
  readonly text: string
}

/** Whether a payment is expected to reach the balance at any moment. */
export function isWaiting(billing: Pick<Billing, 'movements' | 'pending' | 'asOf'>, returned: Return | undefined): boolean {
  return (billing.pending ?? []).length > 0 || (returned === 'paid' && newTopUp(billing) === undefined)
}

/** What the page says about the payment from which the person comes, or that is on its way. */
export function paymentNotice(
  billing: Pick<Billing, 'movements' | 'pending' | 'asOf'>,
  returned: Return | undefined,
  money: Money,
): Notice | undefined {
  const { pending = [] } = billing
  if (pending.length > 0) {
    const sum = money.text(sumOf(pending.map(({ amount }) => microsOf(amount))))
    const title = pending.length === 1 ? `${sum} is on its way` : `${sum} in ${pending.length} payments is on its way`
    return { look: 'info', title, text: 'The bank has not confirmed the payment yet. Then the amount is in the balance.' }
  }
  if (returned === 'cancelled')
    return { look: 'info', title: 'Nothing was charged', text: 'You came back without paying. The balance is as before.' }
  if (returned === undefined) return undefined
  const added = newTopUp(billing)
  if (added !== undefined)
    return { look: 'ok', title: `${money.text(microsOf(added.amount))} is in the balance`, text: 'Your keys can use it from now on.' }
  return {
    look: 'info',
    title: 'The payment is being confirmed',
    text: 'This page checks again every few seconds. You may leave it: the amount reaches the balance all the same.',
  }
}

function newTopUp({ movements, asOf }: Pick<Billing, 'movements' | 'asOf'>): Billing['movements'][number] | undefined {
  const since = Date.parse(asOf) - JUST_MS
  return movements.find(({ type, time }) => type === 'TopUp' && Date.parse(time) >= since)
}
