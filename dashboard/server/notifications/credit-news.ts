/** Finds the Credits that people have not been told of, and makes the mail about them. Pure. */
import { findCondition } from '#api/condition-list.ts'
import type { Credit } from '#api/credit.ts'
import { formatSumAmount, parseSignedAmount } from '#contract/values/signed-micros.ts'
import type { CreditItem } from '../mail/templates/money-mails.ts'
import type { Notification } from './decide.ts'

export interface NewCredit {
  /** Names the Credit among all that an account's people are told. */
  readonly id: string
  readonly micros: bigint
  readonly item: CreditItem
}

/** Credits that a mail names one by one; of more it tells the sum. */
const MAX_NAMED = 10

export function creditIdOf({ metadata }: Credit): string {
  return `credit ${metadata.name}`
}

/** When the Credit was booked, RFC 3339; undefined while it does not count. */
export function bookedAt({ status }: Credit): string | undefined {
  const booked = findCondition(status?.conditions, 'Booked')
  return booked?.status === 'True' ? booked.lastTransitionTime : undefined
}

/** The Credits that were booked since, the oldest first. */
export function newCredits(credits: readonly Credit[], sinceMs: number): readonly NewCredit[] {
  return credits.flatMap((credit) => newCredit(credit, sinceMs) ?? []).toSorted((a, b) => (a.item.at < b.item.at ? -1 : 1))
}

function newCredit(credit: Credit, sinceMs: number): NewCredit | undefined {
  const { amount, type, reference = '' } = credit.spec
  const [at, parsed] = [bookedAt(credit), parseSignedAmount(amount)]
  if (at === undefined || parsed === undefined || Date.parse(at) < sinceMs) return undefined
  const micros = BigInt(parsed)
  return { id: creditIdOf(credit), micros, item: { amount: formatSumAmount(micros), type, reference, at } }
}

/** One mail for all of them; undefined for none. */
export function creditMail(credits: readonly NewCredit[], currency: string): Notification | undefined {
  const [first, ...others] = credits
  if (first === undefined) return undefined
  if (others.length === 0) return { name: first.micros < 0n ? 'credit-reversed' : 'credit-added', parameters: { ...first.item, currency } }
  const sum = (isCounted: (micros: bigint) => boolean): bigint =>
    credits.reduce((total, { micros }) => (isCounted(micros) ? total + micros : total), 0n)
  const added = formatSumAmount(sum((micros) => micros > 0n))
  const reversed = formatSumAmount(-sum((micros) => micros < 0n))
  const newest = credits
    .slice(-MAX_NAMED)
    .toReversed()
    .map(({ item }) => item)
  return { name: 'credits', parameters: { currency, count: credits.length, added, reversed, newest } }
}
