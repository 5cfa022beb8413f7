/** What a person may top up, and what the way to the payment provider and back has led to. Pure. */
import type { Billing, PendingTopUp, TopUpState } from '../../server/page-data/billing.ts'
import { microsOf, type Money, sumOf } from '../micros.ts'
import { plainNumber } from '../typed-number.ts'
import { leastTopUp } from './balance.ts'

/** Time in which a top-up counts as the one from which a person comes back. */
const JUST_MS = 600_000
const ONE = 1_000_000n
/** As the server reads amounts. */
const AMOUNT = /^(0|[1-9]\d{0,8})(\.\d{1,6})?$/

/** In place of an amount: the person types one. */
export const OTHER = 'other'

/** What one payment may be. */
export interface Bounds {
  readonly least: bigint
  readonly most: bigint
}

export interface Offer {
  /** Decimal, as the server has them. */
  readonly amounts: readonly string[]
  /** The one that is picked at first, or `OTHER`; '' if there is none. */
  readonly usual: string
  /** Whether no payment lets calls pass again. */
  readonly isTooSmall: boolean
  /** For an amount that the person types; undefined where the server does not say. */
  readonly bounds: Bounds | undefined
}

/** The amounts after which calls are answered; all of them where no amount is enough. */
export function offerOf({ isPrepaid, balance, payments }: Pick<Billing, 'isPrepaid' | 'balance' | 'payments'>, cent: bigint): Offer {
  const missing = isPrepaid ? leastTopUp(microsOf(balance), cent) : 0n
  const bounds = boundsOf(payments)
  const enough = payments.amounts.filter((amount) => microsOf(amount) >= missing)
  if (enough.length === 0) return offerOfNone(payments.amounts, missing, bounds)
  const usual = enough.length < payments.amounts.length ? enough[0] : enough[Math.floor(enough.length / 2)]
  return { amounts: enough, usual: usual ?? '', isTooSmall: false, bounds }
}

/** The offer if no preset amount covers what is missing. A person may then type an amount within the bounds. */
function offerOfNone(amounts: readonly string[], missing: bigint, bounds: Bounds | undefined): Offer {
  const isTyped = bounds !== undefined && bounds.most >= missing
  return { amounts, usual: isTyped ? OTHER : (amounts.at(-1) ?? ''), isTooSmall: !isTyped && amounts.length > 0, bounds }
}

function boundsOf({ least, most }: Billing['payments']): Bounds | undefined {
  return least === undefined || most === undefined ? undefined : { least: microsOf(least), most: microsOf(most) }
}

/** What is wrong with the amount that a person typed. @returns undefined for one that may be paid */
export function amountError(text: string, { least, most }: Bounds, money: Money): string | undefined {
  const amount = plainNumber(text)
  if (!AMOUNT.test(amount) || microsOf(amount) % money.cent !== 0n) return `Write an amount like ${money.cent < ONE ? '25.00' : '2500'}.`
  const micros = microsOf(amount)
  return micros < least || micros > most ? `Choose an amount from ${money.exact(least)} to ${money.exact(most)}.` : undefined
}

/** What a payment of this amount leaves missing until calls are answered again. @returns 0 if nothing, and for text that is not an amount */
export function missingAfter(text: string, { isPrepaid, balance }: Pick<Billing, 'isPrepaid' | 'balance'>, cent: bigint): bigint {
  const amount = plainNumber(text)
  return isPrepaid && AMOUNT.test(amount) ? leastTopUp(microsOf(balance) + microsOf(amount), cent) : 0n
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
