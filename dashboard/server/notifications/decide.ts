/** Which mails the people of an account get: from what there is now, and what they were told before. Pure. */
import type { Account } from '#api/account.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { Credit } from '#api/credit.ts'
import { formatSumAmount } from '#contract/values/signed-micros.ts'
import type { MailName, MailParameters } from '../mail/templates/mails.ts'
import { type BalanceState, balanceStateOf, isWorse } from './balance-state.ts'
import { creditMail, newCredits } from './credit-news.ts'
import { keyMail, keyNews } from './key-news.ts'

/** Mails of one subject are counted together. */
export type Subject = 'credits' | 'balance' | 'keys'

/** A mail to all people of the account. */
export type Notification = {
  [Name in MailName]: { readonly name: Name; readonly parameters: MailParameters[Name] }
}[MailName]

/** What is kept about an account beside the subjects that were told. */
export interface ToldState {
  /** The state of the balance that people know; absent before the first one, which is no news. */
  readonly balance?: BalanceState | undefined
  /** UTC day of the counts, since 1970. */
  readonly day: number
  /** Mails of that day. */
  readonly mails: Readonly<Record<Subject, number>>
}

/** What there is now. */
export interface AccountFacts {
  readonly account: Account
  /** Credits of the account. */
  readonly credits: readonly Credit[]
  /** Keys of the account. */
  readonly keys: readonly ApiKey[]
  /** Since when the account has people who read mails, ms since 1970. What was before is history. */
  readonly sinceMs: number
  readonly nowMs: number
  readonly currency: string
  /** A balance below it is low, micro-units; undefined: none is. */
  readonly lowBalance: bigint | undefined
}

export interface Decision {
  readonly mails: readonly Notification[]
  /** Ids that were told now, or that are history: they are never told again. */
  readonly told: readonly string[]
  readonly state: ToldState
  /** The bound of the day has put something off: decide again on the next day. */
  readonly isPutOff: boolean
}

/** News of one subject. */
export interface News {
  /** undefined: nothing to tell. */
  readonly mail: Notification | undefined
  /** What the mail tells. */
  readonly told: readonly string[]
  /** What is history. */
  readonly history: readonly string[]
}

/** Maximum number of mails of one subject to the people of one account in a UTC day. The last one says that it is the last. */
export const MAX_PER_DAY = 20
/** What happened longer ago is history: a dashboard with an older database, or none, mails nothing about it. ms */
export const NEWS_MS = 2 * 86_400_000
const DAY_MS = 86_400_000
const NONE: ToldState['mails'] = { credits: 0, balance: 0, keys: 0 }

/** @param told ids of all that the people were told */
export function decide(facts: AccountFacts, told: ReadonlySet<string>, before: ToldState | undefined): Decision {
  const today = Math.floor(facts.nowMs / DAY_MS)
  const mails = { ...(before?.day === today ? before.mails : NONE) }
  const balance = balanceNews(facts, before?.balance)
  const news: Readonly<Record<Subject, News>> = {
    credits: creditNews(facts, told),
    balance,
    keys: keyNewsOf(facts, told),
  }
  const sent: Notification[] = []
  const putOff = new Set<Subject>()
  for (const subject of ['credits', 'balance', 'keys'] as const) {
    const { mail } = news[subject]
    if (mail === undefined) continue
    if (mails[subject] >= MAX_PER_DAY) putOff.add(subject)
    else sent.push(withCount(mail, (mails[subject] += 1)))
  }
  return {
    mails: sent,
    told: Object.entries(news).flatMap(([subject, one]) => [...one.history, ...(putOff.has(subject as Subject) ? [] : one.told)]),
    state: { balance: putOff.has('balance') ? before?.balance : balance.balance, day: today, mails },
    isPutOff: putOff.size > 0,
  }
}

/** The begin of what is news: not before the people came, in whole seconds, as Kubernetes writes times. */
export function newsSinceMs({ sinceMs, nowMs }: Pick<AccountFacts, 'sinceMs' | 'nowMs'>): number {
  return Math.max(Math.floor(sinceMs / 1_000) * 1_000, nowMs - NEWS_MS)
}

function withCount(mail: Notification, count: number): Notification {
  if (count < MAX_PER_DAY) return mail
  return { ...mail, parameters: { ...mail.parameters, isLastToday: true } } as Notification
}

function creditNews(facts: AccountFacts, told: ReadonlySet<string>): News {
  const fresh = newCredits(facts.credits, newsSinceMs(facts)).filter(({ id }) => !told.has(id))
  return { mail: creditMail(fresh, facts.currency), told: fresh.map(({ id }) => id), history: [] }
}

function keyNewsOf(facts: AccountFacts, told: ReadonlySet<string>): News {
  const { changes, history } = keyNews(facts.keys, { told, newsSinceMs: newsSinceMs(facts), nowMs: facts.nowMs })
  return { mail: keyMail(changes), told: changes.flatMap(({ ids }) => ids), history }
}

function balanceNews(facts: AccountFacts, before: BalanceState | undefined): News & Pick<ToldState, 'balance'> {
  const now = balanceStateOf(facts.account, facts.lowBalance)
  const mail = now !== undefined && isWorse(now, before) ? balanceMail(facts, now) : undefined
  return { mail, told: [], history: [], balance: now ?? before }
}

function balanceMail({ account, lowBalance = 0n, currency }: AccountFacts, state: BalanceState): Notification {
  if (state === 'Exhausted') return { name: 'balance-empty', parameters: {} }
  const { amount = '' } = account.status?.balance ?? {}
  return { name: 'balance-low', parameters: { amount, bound: formatSumAmount(lowBalance), currency } }
}
