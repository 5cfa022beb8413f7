/** Derives the keyring entry of an ApiKey from the manifest and the existing key material, and the urgency of an edit. Pure. */
import { encodeKeyRecord } from '#contract/records/key-record.ts'
import { isLive, type KeyringEntry, keyRecordOf, type KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { keyPolicy } from '#api/key-policy.ts'
import { namespaceOf, uidOf } from '#kube/port.ts'
import { effective, type EffectivePolicy, type PlanPolicy, tightens } from '#policy/effective.ts'
import type { KeyAccount } from '../../accounts/accounts.ts'
import type { Level } from '../../loop/level.ts'
import { endsFormerValue, isAliveAt } from './hash-source.ts'

/** Maximum number of voided generations in an entry. They identify a late write of a deposed leader. */
const KEEP_VOIDED = 4
/** The last second of RFC 3339. A time with an offset can be later. */
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59)

/** The time at which the key stops working, ms since 1970; null = never. */
export function expiryOf(apiKey: ApiKey): number | null {
  const { expirationTime, ttlSeconds } = apiKey.spec
  if (expirationTime !== undefined) return bounded(Date.parse(expirationTime))
  if (ttlSeconds !== undefined) return bounded(Date.parse(apiKey.metadata.creationTimestamp ?? '') + ttlSeconds * 1000)
  return null
}

/** Records hold no time before 1970, and NaN would become null (= never), so both count as expired. A status has four-digit years. */
function bounded(ms: number): number {
  return Number.isNaN(ms) ? 0 : Math.min(LATEST_MS, Math.max(0, ms))
}

export interface Material {
  /** What the account of the key says; undefined for a key without one, or if there is no such Account. */
  readonly account?: KeyAccount | undefined
  readonly verifiers: readonly KeyringVerifier[]
  readonly revision: number
  readonly version: number
  /** The present entry. Fields that this version does not know are kept. */
  readonly former?: KeyringEntry | undefined
}

/** The effective policy that a manifest asks for. @param entry the present entry, if there is one @param plan of its account */
export function policyOf({ spec }: ApiKey, entry?: KeyringEntry, plan?: PlanPolicy): EffectivePolicy {
  return effective(keyPolicy(spec, entry?.budgets), plan)
}

/**
 * @returns the wanted entry. A manifest with `state: Suspended` suspends the key even after a loss of Redis; so does an account that does not
 * admit the namespace, and a key is never Active without the account that its manifest names.
 */
export function entryOf(apiKey: ApiKey, { account, verifiers, revision, version, former }: Material): KeyringEntry {
  const { accountRef, state } = apiKey.spec
  const uid = accountRef && accountUid(account, former)
  return {
    ...former,
    version,
    revision,
    uid: uidOf(apiKey),
    namespace: namespaceOf(apiKey),
    name: apiKey.metadata.name,
    state: state === 'Active' && isRefused(apiKey, uid, { account, former }) ? 'Suspended' : state,
    ...endOf(apiKey, account, former),
    generation: apiKey.metadata.generation ?? 0,
    account: uid,
    ...keyPolicy(apiKey.spec, former?.budgets),
    verifiers,
    deletedMs: null,
  }
}

/** A key keeps the account that it has while no Account of the name is accepted. */
function accountUid(account: KeyAccount | undefined, former: KeyringEntry | undefined): string | undefined {
  return account?.uid ?? former?.account
}

/** A key that was stopped stays stopped while nobody knows whether its account admits the namespace. */
function isRefused({ spec }: ApiKey, uid: string | undefined, { account, former }: Pick<Material, 'account' | 'former'>): boolean {
  if (spec.accountRef === undefined) return false
  const isAdmitted = account?.admitsNamespace ?? former?.state !== 'Suspended'
  return uid === undefined || !isAdmitted
}

/**
 * The end of a key. The plan's default and ceiling act when the key is accepted or its end is edited, and never on an end that was decided:
 * otherwise an edit of a Plan would stop keys that work.
 */
function endOf(
  apiKey: ApiKey,
  account: KeyAccount | undefined,
  former: KeyringEntry | undefined,
): Pick<KeyringEntry, 'expiresMs' | 'askedMs'> {
  const askedMs = expiryOf(apiKey)
  if (apiKey.spec.accountRef === undefined) return { expiresMs: askedMs, askedMs: undefined }
  if (former?.askedMs !== undefined && former.askedMs === askedMs) return { expiresMs: former.expiresMs, askedMs }
  return {
    expiresMs: endWithin(account?.planSpec?.perKey?.ttlSeconds, askedMs, Date.parse(apiKey.metadata.creationTimestamp ?? '')),
    askedMs,
  }
}

/** @param ttl of the plan */
function endWithin(ttl: Ttl | undefined, askedMs: number | null, createdMs: number): number | null {
  const ends = [askedMs ?? after(createdMs, ttl?.default), after(createdMs, ttl?.ceiling)].filter((end) => end !== null)
  return ends.length === 0 ? null : Math.min(...ends)
}

type Ttl = NonNullable<NonNullable<NonNullable<KeyAccount['planSpec']>['perKey']>['ttlSeconds']>

function after(createdMs: number, seconds: number | undefined): number | null {
  return seconds === undefined ? null : bounded(createdMs + seconds * 1000)
}

/** @returns the verifiers with a new one. Only the last voided verifiers stay, so that a crash loop does not fill the entry. */
export function withVerifier(former: readonly KeyringVerifier[], added: KeyringVerifier): readonly KeyringVerifier[] {
  const voided = former.filter(({ state }) => state === 'Voided').slice(-KEEP_VOIDED)
  return [...former.filter((verifier) => verifier.state !== 'Voided' || voided.includes(verifier)), added]
}

export function withState(
  verifiers: readonly KeyringVerifier[],
  of: KeyringVerifier,
  state: KeyringVerifier['state'],
): readonly KeyringVerifier[] {
  return verifiers.map((verifier) => (verifier.id === of.id ? { ...verifier, state } : verifier))
}

/** @returns whether the wanted entry restricts the holders of the key, so that the edit is urgent. @param now ms since 1970 */
export function restricts(present: KeyringEntry, wanted: KeyringEntry, now: number = 0): boolean {
  return stops(present, wanted, now) || isEarlier(present, wanted) || tightens(effective(present), effective(wanted))
}

function isEarlier(present: Pick<KeyringEntry, 'expiresMs'>, wanted: Pick<KeyringEntry, 'expiresMs'>): boolean {
  return wanted.expiresMs !== null && (present.expiresMs === null || wanted.expiresMs < present.expiresMs)
}

/** @returns whether the wanted entry stops a value: such an edit does not even wait to share a revision with others */
export function stops(present: KeyringEntry, wanted: KeyringEntry, now: number = 0): boolean {
  return STRICTNESS[wanted.state] > STRICTNESS[present.state] || endsVerifier(present, wanted, now)
}

const STRICTNESS = { Active: 0, Suspended: 1, Revoked: 2 } as const

function endsVerifier(present: KeyringEntry, wanted: KeyringEntry, now: number): boolean {
  const alive = new Set(wanted.verifiers.filter(isLive).map(({ id }) => id))
  return present.verifiers.some((verifier) => isAliveAt(verifier, now) && !alive.has(verifier.id))
}

/** @returns the next time at which the key or a former value stops working; undefined if there is none */
export function nextEndMs(entry: KeyringEntry | undefined, now: number): number | undefined {
  const ends = [entry?.expiresMs ?? null, ...(entry?.verifiers.filter(isLive) ?? []).map(({ expiresMs }) => expiresMs)]
  const future = ends.filter((end) => end !== null && end > now) as number[]
  return future.length === 0 ? undefined : Math.min(...future)
}

/** Encoded record of an entry for the projection, without its revision; undefined for a deleted key, which has no record. */
export function recordText(entry: KeyringEntry, version: number): string | undefined {
  return entry.deletedMs === null ? encodeKeyRecord(keyRecordOf({ ...entry, revision: 0 }), version) : undefined
}

/** @returns the generation of the user's Secret: the newest live verifier */
export function currentVerifier(entry: KeyringEntry | undefined): KeyringVerifier | undefined {
  return entry?.verifiers.filter(isLive).reduce<KeyringVerifier | undefined>((a, b) => (a && a.number > b.number ? a : b), undefined)
}

const BARE = { verifiers: [], revision: 0, version: 1 } as const

/** The level of a watch event. @returns undefined if no reconcile is needed: the operator's own writes come back as events */
export function urgencyOf(before: ApiKey | undefined, after: ApiKey): Level | undefined {
  if (before === undefined || before.metadata.uid !== after.metadata.uid) return levelOfNew(after)
  if (before.metadata.deletionTimestamp !== after.metadata.deletionTimestamp) return 'urgent'
  if (before.metadata.generation !== after.metadata.generation) return restrictsEdit(before, after) ? 'urgent' : levelOfEdit(after)
  return hasLostFinalizer(before, after) || isAnnotated(before, after) ? levelOfEdit(after) : undefined
}

function restrictsEdit(before: ApiKey, after: ApiKey): boolean {
  return endsFormerValue(before, after) || restricts(entryOf(before, BARE), entryOf(after, BARE))
}

function hasLostFinalizer(before: ApiKey, after: ApiKey): boolean {
  return before.metadata.finalizers?.includes(FINALIZER) === true && after.metadata.finalizers?.includes(FINALIZER) !== true
}

function isAnnotated(before: ApiKey, after: ApiKey): boolean {
  return JSON.stringify(before.metadata.annotations ?? {}) !== JSON.stringify(after.metadata.annotations ?? {})
}

function levelOfNew(apiKey: ApiKey): Level {
  if (apiKey.metadata.deletionTimestamp !== undefined || apiKey.spec.state !== 'Active') return 'urgent'
  return levelOfEdit(apiKey)
}

/** New objects wait for existing objects. */
function levelOfEdit({ metadata }: ApiKey): Level {
  return metadata.finalizers?.includes(FINALIZER) === true ? 'change' : 'create'
}
