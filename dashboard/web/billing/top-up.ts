/** What a person may top up, and what the way to the payment provider and back has led to. Pure. */
import type { Billing, PendingTopUp, TopUpState } from '../../server/page-data/billing.ts'
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

/** With what the payment provider has sent the person back. */
export interface Return {
  readonly outcome: 'paid' | 'cancelled'
  /** The provider's id of the payment; '' if there is none. */
  readonly session: string
}

/** @param search the query of the URL @returns undefined: the person comes from elsewhere */
export function returnOf(search: string): Return | undefined {
  const query = new URLSearchParams(search)
  const outcome = query.get('top-up')
  return outcome === 'paid' || outcome === 'cancelled' ? { outcome, session: query.get('session') ?? '' } : undefined
}

export interface Notice {
  readonly look: 'info' | 'ok' | 'danger'
  readonly title: string
  readonly text: string
}

type Payments = Pick<Billing, 'movements' | 'pending' | 'asOf'>

/** Whether the balance is expected to change at any moment. @param state of the payment from which the person comes; undefined: not known */
export function isWaiting(billing: Payments, returned: Return | undefined, state: TopUpState['state'] | undefined): boolean {
  if ((billing.pending ?? []).length > 0) return true
  return returned?.outcome === 'paid' && isUnfinished(state) && newTopUp(billing) === undefined
}

/** Whether a payment may still be confirmed. */
function isUnfinished(state: TopUpState['state'] | undefined): boolean {
  return state !== 'failed' && state !== 'expired'
}

export interface PaymentFacts {
  readonly returned: Return | undefined
  readonly state: TopUpState['state'] | undefined
  readonly money: Money
}

/** What the page says about the payment from which the person comes, or that is on its way. */
export function paymentNotice(billing: Payments, { returned, state, money }: PaymentFacts): Notice | undefined {
  if (returned?.outcome === 'cancelled')
    return { look: 'info', title: 'Nothing was charged', text: 'You came back without paying. The balance is as before.' }
  if (returned !== undefined && state === 'failed')
    return { look: 'danger', title: 'The payment failed', text: 'Nothing was added to the balance. Top up again, or pay in another way.' }
  if (returned !== undefined && state === 'expired')
    return { look: 'info', title: 'Nothing was charged', text: 'The page of the payment was open for too long. Top up again.' }
  const pending = pendingNotice(billing.pending ?? [], money)
  return pending ?? (returned && returnNotice(billing, state, money))
}

function pendingNotice(pending: readonly PendingTopUp[], money: Money): Notice | undefined {
  if (pending.length === 0) return undefined
  const sum = money.text(sumOf(pending.map(({ amount }) => microsOf(amount))))
  const title = pending.length === 1 ? `${sum} is on its way` : `${sum} in ${pending.length} payments is on its way`
  return { look: 'info', title, text: NOT_CONFIRMED }
}

const NOT_CONFIRMED = 'The bank has not confirmed the payment yet, which may take some working days. Then the amount is in the balance.'

function returnNotice(billing: Payments, state: TopUpState['state'] | undefined, money: Money): Notice {
  const added = newTopUp(billing)
  if (added !== undefined)
    return { look: 'ok', title: `${money.text(microsOf(added.amount))} is in the balance`, text: 'Your keys can use it from now on.' }
  if (state === 'processing') return { look: 'info', title: 'The payment is on its way', text: NOT_CONFIRMED }
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
