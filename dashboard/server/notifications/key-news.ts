/** What has happened to the keys of an account, and the mail about it. Pure. */
import type { ApiKey } from '#api/apikey.ts'
import { createdMs } from '#kube/port.ts'
import type { KeyChange } from '../mail/templates/key-mails.ts'
import type { Notification } from './decide.ts'

export interface NewChange {
  readonly change: KeyChange
  /** Ids that are told by it. */
  readonly ids: readonly string[]
}

export interface KeyNews {
  readonly changes: readonly NewChange[]
  /** Ids of what was before. */
  readonly history: readonly string[]
}

export interface KeyFacts {
  readonly told: ReadonlySet<string>
  readonly newsSinceMs: number
  readonly nowMs: number
}

/** How long before its end a key is announced to expire, ms. */
export const EXPIRY_NOTICE_MS = 7 * 86_400_000
/** Changes that a mail names one by one. */
const MAX_NAMED = 10
const PREFIX = 8

const NOTHING: KeyNews = { changes: [], history: [] }

/** Ids of a key begin with a word, a space, and the name of the key. */
const seenId = (key: ApiKey): string => `key ${key.metadata.name}`
const revokedId = (key: ApiKey): string => `key-revoked ${key.metadata.name}`
const expiresId = (key: ApiKey, at: string): string => `key-expires ${key.metadata.name} ${at}`

/** The name of the key to which an id belongs; undefined for an id of something else. */
export function keyOfId(id: string): string | undefined {
  const [word = '', name] = id.split(' ')
  return /^key(-|$)/.test(word) ? name : undefined
}

/** When the key ends, RFC 3339. */
export function expiryOf({ spec, status }: ApiKey): string | undefined {
  return status?.expirationTime ?? spec.expirationTime
}

/** Whether the end of a key is near enough for its mail. A key that was made for a short time needs none. */
export function expiresSoon(key: ApiKey, nowMs: number): boolean {
  const at = Date.parse(expiryOf(key) ?? '')
  return key.spec.state !== 'Revoked' && at > nowMs && at - nowMs <= EXPIRY_NOTICE_MS && at - createdMs(key) > EXPIRY_NOTICE_MS
}

export function keyNews(keys: readonly ApiKey[], facts: KeyFacts): KeyNews {
  const each = keys.map((key) => newsOf(key, facts))
  return { changes: each.flatMap(({ changes }) => changes), history: each.flatMap(({ history }) => history) }
}

function newsOf(key: ApiKey, { told, newsSinceMs, nowMs }: KeyFacts): KeyNews {
  const isSeen = told.has(seenId(key))
  const isNew = !isSeen && createdMs(key) >= newsSinceMs
  if (key.spec.state === 'Revoked') return told.has(revokedId(key)) ? NOTHING : revokedNews(key, { isSeen, isNew })
  if (!isNew) return { changes: expiryNews(key, told, nowMs), history: isSeen ? [] : [seenId(key)] }
  const created = { ...itemOf(key), change: 'created', at: key.metadata.creationTimestamp ?? '' } as const
  return { changes: [{ change: created, ids: [seenId(key)] }, ...expiryNews(key, told, nowMs)], history: [] }
}

/** Nobody knows when a key was revoked that was never seen before, unless the key itself is new. */
function revokedNews(key: ApiKey, { isSeen, isNew }: { readonly isSeen: boolean; readonly isNew: boolean }): KeyNews {
  const ids = isSeen ? [revokedId(key)] : [seenId(key), revokedId(key)]
  if (!isSeen && !isNew) return { changes: [], history: ids }
  return { changes: [{ change: { ...itemOf(key), change: 'revoked', at: '' }, ids }], history: [] }
}

function expiryNews(key: ApiKey, told: ReadonlySet<string>, nowMs: number): readonly NewChange[] {
  const at = expiryOf(key)
  if (at === undefined || !expiresSoon(key, nowMs) || told.has(expiresId(key, at))) return []
  return [{ change: { ...itemOf(key), change: 'expires', at }, ids: [expiresId(key, at)] }]
}

/** @param key its status has the prefix, or its source the hint, of the form `first 8…last 4`; the mail has the first 8 alone */
function itemOf({ metadata, spec, status }: ApiKey): Pick<KeyChange, 'name' | 'prefix'> {
  const [first = '', ...rest] = (status?.prefix ?? spec.source?.hash?.hint ?? '').split('…')
  return { name: spec.displayName ?? metadata.name, prefix: rest.length === 0 ? '' : first.slice(0, PREFIX) }
}

const NAMES = { created: 'key-created', expires: 'key-expires', revoked: 'key-revoked' } as const

/** One mail for all of them; undefined for none. */
export function keyMail(news: readonly NewChange[]): Notification | undefined {
  const [first, ...others] = news.map(({ change }) => change)
  if (first === undefined) return undefined
  const { change, ...parameters } = first
  if (others.length === 0) return { name: NAMES[change], parameters }
  return { name: 'keys', parameters: { count: news.length, changes: [first, ...others].slice(0, MAX_NAMED) } }
}
