/** Mails about the balance of an account. Amounts are decimal text, as the ledger has them. */
import { counted, utcTime } from '../../pages/utc-time.ts'
import { compose, type Mail, type MailSite, oneLine } from './mail.ts'

/** Every mail about an account can be the last one of its day. */
export interface DailyParameters {
  /** No further mail of this subject comes today: the next one has the rest. */
  readonly isLastToday?: boolean
}

/** One Credit that counts. */
export interface CreditItem {
  /** `25.00`; `-25.00` where money was taken back */
  readonly amount: string
  readonly type: string
  /** Id of the payment, or a note of the administrator; may be empty. */
  readonly reference: string
  /** RFC 3339. */
  readonly at: string
}

export interface CreditParameters extends CreditItem, DailyParameters {
  readonly currency: string
}

export interface CreditsParameters extends DailyParameters {
  readonly currency: string
  readonly count: number
  /** Sums of all of them. */
  readonly added: string
  readonly reversed: string
  /** The newest. */
  readonly newest: readonly CreditItem[]
}

export interface LowBalanceParameters extends DailyParameters {
  readonly amount: string
  readonly bound: string
  readonly currency: string
}

const BILLING = { label: 'Billing', path: '/billing' } as const
const KEYS_STOP = 'When nothing is left, your API keys answer 402 until money is added.'
const LAST_TODAY = 'This is the last mail of this kind today. What else happens today is in the next one, tomorrow.'
const WORDS: Readonly<Partial<Record<string, string>>> = {
  TopUp: 'top-up',
  Grant: 'grant',
  Refund: 'refund',
  Dispute: 'dispute at the bank',
  Adjustment: 'correction',
}

/** The paragraph that says so, if the mail is the last one. */
export function lastToday({ isLastToday }: DailyParameters): readonly string[] {
  return isLastToday ? [LAST_TODAY] : []
}

export function creditAddedMail(site: MailSite, credit: CreditParameters): Mail {
  const amount = `${credit.amount} ${credit.currency}`
  return compose(site, {
    subject: `${amount} was added to your balance at ${site.name}`,
    before: [`${amount} was added to the balance of your account (${utcTime(new Date(credit.at))}).`, reasonOf(credit)],
    link: BILLING,
    after: lastToday(credit),
  })
}

export function creditReversedMail(site: MailSite, credit: CreditParameters): Mail {
  const amount = `${unsigned(credit.amount)} ${credit.currency}`
  return compose(site, {
    subject: `${amount} was taken from your balance at ${site.name}`,
    before: [`${amount} was taken from the balance of your account (${utcTime(new Date(credit.at))}).`, reasonOf(credit), KEYS_STOP],
    link: BILLING,
    after: lastToday(credit),
  })
}

export function creditsMail(site: MailSite, { count, added, reversed, currency, newest, ...daily }: CreditsParameters): Mail {
  const more = count - newest.length
  return compose(site, {
    subject: `Your balance at ${site.name} was changed ${counted(count, 'time')}`,
    before: [
      `The balance of your account was changed ${counted(count, 'time')}: ${added} ${currency} was added, and ${reversed} ${currency} was taken away.`,
      ...newest.map((credit) => `${utcTime(new Date(credit.at))}: ${credit.amount} ${currency}. ${reasonOf(credit)}`),
      ...(more > 0 ? [`And ${more} more, which Billing shows.`] : []),
    ],
    link: BILLING,
    after: lastToday(daily),
  })
}

export function balanceLowMail(site: MailSite, { amount, bound, currency, ...daily }: LowBalanceParameters): Mail {
  return compose(site, {
    subject: `Your balance at ${site.name} is low`,
    before: [`Your account has ${amount} ${currency} left, which is less than ${bound} ${currency}.`, KEYS_STOP],
    link: BILLING,
    after: lastToday(daily),
  })
}

export function balanceEmptyMail(site: MailSite, daily: DailyParameters): Mail {
  return compose(site, {
    subject: `Your balance at ${site.name} is used up`,
    before: ['The balance of your account is used up. Your API keys answer 402 until money is added. Then the same keys work again.'],
    link: BILLING,
    after: lastToday(daily),
  })
}

/** `Reason: top-up. Reference: PO 4711.` */
function reasonOf({ type, reference }: CreditItem): string {
  return `Reason: ${WORDS[type] ?? type}.${reference === '' ? '' : ` Reference: ${oneLine(reference)}`}`
}

function unsigned(amount: string): string {
  return amount.replace(/^-/, '')
}
