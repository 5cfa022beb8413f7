/** Mails about API keys. They name a key by its name and the beginning of its value, and never by more of the value. */
import { counted, utcTime } from '../../pages/utc-time.ts'
import { compose, type Mail, type MailSite, oneLine } from './mail.ts'
import { type DailyParameters, lastToday } from './money-mails.ts'

export interface KeyItem {
  /** As people have named the key. */
  readonly name: string
  /** First characters of the value; empty where they are not known. */
  readonly prefix: string
  /** RFC 3339: when the key was made, or when the key expires; empty for a revoked key. */
  readonly at: string
}

export interface KeyParameters extends KeyItem, DailyParameters {}

export interface KeyChange extends KeyItem {
  readonly change: 'created' | 'expires' | 'revoked'
}

export interface KeysParameters extends DailyParameters {
  readonly count: number
  /** The first of them. */
  readonly changes: readonly KeyChange[]
}

const KEYS = { label: 'API keys', path: '/keys' } as const

export function keyCreatedMail(site: MailSite, key: KeyParameters): Mail {
  return compose(site, {
    subject: `An API key was created at ${site.name}`,
    before: [
      `The API key ${named(key)} was created in your account on ${time(key)}.`,
      'If you do not know the key, revoke it at once, and set a new password. Somebody else may be signed in as you.',
    ],
    link: KEYS,
    after: lastToday(key),
  })
}

export function keyExpiresMail(site: MailSite, key: KeyParameters): Mail {
  return compose(site, {
    subject: `An API key at ${site.name} expires soon`,
    before: [
      `The API key ${named(key)} expires on ${time(key)}. From then on its requests are answered 401.`,
      'To go on, give the key a later end, or make another key.',
    ],
    link: KEYS,
    after: lastToday(key),
  })
}

export function keyRevokedMail(site: MailSite, key: KeyParameters): Mail {
  return compose(site, {
    subject: `An API key at ${site.name} was revoked`,
    before: [
      `The API key ${named(key)} was revoked, for ever. Its requests are answered 401.`,
      'If nobody in your account revoked the key, ask your administrator, who can revoke keys too.',
    ],
    link: KEYS,
    after: lastToday(key),
  })
}

export function keysMail(site: MailSite, { count, changes, ...daily }: KeysParameters): Mail {
  const more = count - changes.length
  return compose(site, {
    subject: `${counted(count, 'change')} of your API keys at ${site.name}`,
    before: [
      `There are ${counted(count, 'change')} of the API keys of your account.`,
      ...changes.map((key) => `${named(key)}: ${WORDS[key.change](key)}`),
      ...(more > 0 ? [`And ${more} more.`] : []),
      'If you do not know a key, revoke it at once, and set a new password. Somebody else may be signed in as you.',
    ],
    link: KEYS,
    after: lastToday(daily),
  })
}

const WORDS: { readonly [Change in KeyChange['change']]: (key: KeyItem) => string } = {
  created: (key) => `created on ${time(key)}`,
  expires: (key) => `expires on ${time(key)}`,
  revoked: () => 'revoked',
}

/** `docs-search (sk-h-9f2…)` */
function named({ name, prefix }: KeyItem): string {
  return `${oneLine(name)}${prefix === '' ? '' : ` (${prefix}…)`}`
}

function time({ at }: KeyItem): string {
  return utcTime(new Date(at))
}
