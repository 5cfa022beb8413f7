/**
 * Which Credits a payment has, decided from what the provider says of the payment now. The same facts give the same Credits, with the same names, so
 * that events may come never, often, late or in another order. Pure.
 */
import { createHash } from 'node:crypto'
import { DNS_SUBDOMAIN } from '#api/metadata.ts'
import { type SignedMicros, signedMicrosOf } from '#contract/values/signed-micros.ts'
import { microsOfMinor } from './minor-units.ts'
import { METADATA, type DisputeFact, type Payment, type RefundFact, type SessionFact } from './payment.ts'

/** What every payment of this installation has. */
export interface Expected {
  readonly installation: string
  /** `EUR` */
  readonly currency: string
  /** Real money, and no test. */
  readonly isLive: boolean
}

export interface WantedCredit {
  readonly name: string
  readonly account: { readonly name: string; readonly uid: string }
  readonly amount: SignedMicros
  readonly type: 'TopUp' | 'Refund' | 'Dispute'
  /** The id of which the name is made. */
  readonly reference: string
}

export type Decision =
  /** The order is the order of creation: first what adds money. */
  | { readonly kind: 'credits'; readonly credits: readonly WantedCredit[] }
  /** Not paid: not yet, or never. */
  | { readonly kind: 'unpaid' }
  /** Of another program, or of another installation that uses the same account at the provider. */
  | { readonly kind: 'foreign' }
  /** Of this installation, and wrong: somebody must look. */
  | { readonly kind: 'refused'; readonly why: string }

/** Id, micro-units and type. */
type Move = readonly [string, number, WantedCredit['type']]

const NAME_DIGITS = 40
const NAME = new RegExp(DNS_SUBDOMAIN)
const MAX_NAME = 253
const UID = /^[0-9A-Za-z-]{1,128}$/

/** @param id the provider's id of what moved the money */
export function creditName(id: string): string {
  return `stripe-${createHash('sha256').update(id).digest('hex').slice(0, NAME_DIGITS)}`
}

export function creditsOf(payment: Payment, expected: Expected): Decision {
  const { session } = payment
  if (session.metadata[METADATA.installation] !== expected.installation) return { kind: 'foreign' }
  const why = refusalOf(payment, expected)
  if (why !== undefined) return { kind: 'refused', why }
  if (session.state !== 'paid') return { kind: 'unpaid' }
  return movementsOf(payment, accountOf(session))
}

function accountOf({ metadata }: SessionFact): WantedCredit['account'] {
  return { name: metadata[METADATA.account] ?? '', uid: metadata[METADATA.uid] ?? '' }
}

/** What is wrong with a payment that says to be of this installation. */
function refusalOf({ session, refunds, disputes }: Payment, { currency, isLive }: Expected): string | undefined {
  const { name, uid } = accountOf(session)
  if (session.isLive !== isLive) return session.isLive ? 'it is real money, and this installation tests' : 'it is a test, and no real money'
  if (!NAME.test(name) || name.length > MAX_NAME || !UID.test(uid)) return 'it names no account'
  if (session.clientReference !== uid) return 'its client reference is another account than its metadata'
  const other = [session, ...refunds, ...disputes].find((one) => one.currency.toLowerCase() !== currency.toLowerCase())
  return other === undefined ? undefined : `it has the currency ${other.currency.toUpperCase()}, and this installation has ${currency}`
}

/** Money that was taken back, or given again after that. */
interface Reversal {
  /** s since 1970: when the money moved. */
  readonly at: number
  readonly type: 'Refund' | 'Dispute'
  readonly reference: string
  /** Minor units that `of` asks for; undefined: they are given again. */
  readonly takes: number | undefined
  /** Id of the refund or the dispute. */
  readonly of: string
}

/**
 * The payment, and all that was taken back and given again, in the order in which the money moved: so what comes later never changes an earlier
 * amount. What is taken back is never more than the payment: a dispute over all of a payment that was refunded in part takes the rest. If that refund
 * then fails, its amount stays taken, since the bank has taken all of the payment.
 */
function movementsOf({ session, refunds, disputes }: Payment, account: WantedCredit['account']): Decision {
  const { currency, payment, total, beside } = session
  const granted = total === undefined ? undefined : microsOfMinor(total - beside, currency)
  if (payment === undefined || granted === undefined || granted === 0) return { kind: 'refused', why: 'it is paid, and has no amount' }
  const moves: Move[] = [[payment, granted, 'TopUp']]
  const reversals = [...refunds.flatMap(reversalsOfRefund), ...disputes.flatMap(reversalsOfDispute)].toSorted(byTime)
  const takenBy = new Map<string, number>()
  let left = granted
  for (const { of, reference, takes, type } of reversals) {
    const taken = takes === undefined ? 0 : microsOfMinor(takes, currency)
    if (taken === undefined) return { kind: 'refused', why: `${reference} has no amount` }
    takenBy.set(of, taken)
    const now = Math.max(0, granted - sumOf(takenBy.values()))
    if (now !== left) moves.push([reference, now - left, type])
    left = now
  }
  return creditsFor(moves, account)
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0
  for (const number of numbers) sum += number
  return sum
}

function reversalsOfRefund({ id, amount, created, returned }: RefundFact): readonly Reversal[] {
  const taken: Reversal = { at: created, type: 'Refund', reference: id, takes: amount, of: id }
  return returned === undefined ? [taken] : [taken, { at: returned, type: 'Refund', reference: `${id}:failed`, takes: undefined, of: id }]
}

function reversalsOfDispute({ id, amount, withdrawn, reinstated }: DisputeFact): readonly Reversal[] {
  if (withdrawn === undefined) return []
  const taken: Reversal = { at: withdrawn, type: 'Dispute', reference: `${id}:withdrawn`, takes: amount, of: id }
  if (reinstated === undefined) return [taken]
  return [taken, { at: reinstated, type: 'Dispute', reference: `${id}:reinstated`, takes: undefined, of: id }]
}

/** In one second refunds are first, since nobody can refund what a bank has taken; and what is given again is after what was taken. */
function byTime(a: Reversal, b: Reversal): number {
  if (a.at !== b.at) return a.at - b.at
  if (a.type !== b.type) return a.type === 'Refund' ? -1 : 1
  if (a.of !== b.of) return a.of < b.of ? -1 : 1
  return a.takes === undefined ? 1 : -1
}

function creditsFor(moves: readonly Move[], account: WantedCredit['account']): Decision {
  const credits: WantedCredit[] = []
  for (const [reference, micros, type] of moves) {
    const amount = signedMicrosOf(micros)
    if (amount === undefined) return { kind: 'refused', why: `${reference} is a larger amount than a Credit may have` }
    credits.push({ name: creditName(reference), account, amount, type, reference })
  }
  return { kind: 'credits', credits }
}
