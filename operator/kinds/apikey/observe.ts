/** Observes the state of one ApiKey from the memory of this process, without any call. Decides nothing. */
import { ACCOUNTS_FEATURE, LIMITS_FEATURE, PROOFS_FEATURE } from '#contract/records/format.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import { createdMs, namespaceOf, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import { type Aged, isOlder } from '#policy/age-list.ts'
import { needsPrices } from '#policy/effective.ts'
import { ACCOUNT_INDEX, type KeyAccount } from '../../accounts/accounts.ts'
import type { ApiKeyDeps } from './kind.ts'
import { HASH_INDEX, hashesOf, type HashSource, hashSource, isAliveAt, verifierOfHash } from './hash-source.ts'
import { currentVerifier, policyOf, recordText } from './keyring-entry.ts'
import type { AccountLimit, Observed } from './observed.ts'
import { hasStandIn } from './unread-keys.ts'
import { firstToRetire, retiresAtMs } from './retirement.ts'

/** Revoked and expired keys that an account may have beside as many as its plan allows. */
const SPARE_KEYS = 20

/** @returns undefined if there is no such ApiKey, or if this process has released it */
export function observe(ref: ObjectRef, deps: ApiKeyDeps): Observed | undefined {
  const cached = deps.apiKeys.get(ref)
  if (cached === undefined) return undefined
  const apiKey = deps.ownWrites.newest(cached)
  const uid = uidOf(apiKey)
  if (deps.memory.isReleased(uid)) return undefined
  const own = ownState(apiKey, deps)
  // without a readable entry: the proof that the gateways have no record, if there is one
  const projected = isUnmade(apiKey, own) ? undefined : deps.projection.present('key', uid, own.entry && recordText(own.entry, own.version))
  return {
    apiKey,
    ...own,
    projected,
    isProjecting: deps.projection.isPending('key', uid),
    confirmation: projected && deps.acknowledgements.confirmation(projected.revision, uid),
    storeAvailable: deps.projection.available,
    deletingForMs: apiKey.metadata.deletionTimestamp === undefined ? 0 : deps.memory.deletingForMs(uid),
    revocationWaitMs: deps.settings.revocationWaitMs,
    retiresAtMs: retiresAtMs(apiKey, deps.settings.retirement),
    ...valueState(apiKey, own.entry, deps),
    ...accountState(apiKey, own, deps),
    gatewayLimits: deps.limits.supports(LIMITS_FEATURE),
    gatewayAccounts: deps.limits.supports(ACCOUNTS_FEATURE),
    gatewayProofs: deps.limits.supports(PROOFS_FEATURE),
    usage: deps.shownUsage.shown(uid),
    spendLoss: deps.subjects.ledger?.loss(uid),
    heldBack: deps.subjects.ledger?.heldBack(uid) ?? [],
    ...modelsThatLack(apiKey, deps),
  }
}

function timeOf({ subjects, clock }: ApiKeyDeps): Pick<Observed, 'now' | 'isTimeKnown'> {
  const nowMs = subjects.timeMs()
  return { now: nowMs ?? clock.now(), isTimeKnown: nowMs !== undefined }
}

function ownState({ metadata }: ApiKey, deps: ApiKeyDeps) {
  const { keyring, projection, memory, kept, vault, version } = deps
  const { uid = '', generation = 0 } = metadata
  const entry = keyring.pending(uid) ?? keyring.get(uid)
  const verifier = currentVerifier(entry)
  return {
    isConfirmedLive: memory.isConfirmedLive(uid, metadata.resourceVersion),
    entry,
    isCommitting: keyring.state(uid) === 'Pending',
    mayBeInRedis: kept.mayHave(uid),
    isUnreadable: keyring.isUnreadable(uid),
    hasStandIn: hasStandIn({ projection }),
    verifier,
    secret: memory.secret(uid, generation),
    isSecretWritable: memory.isSecretWritable(uid),
    holdsCredential: verifier !== undefined && vault.get(verifier.id) !== undefined,
    version: version(),
    ...timeOf(deps),
    revisionInMs: memory.revisionInMs(uid),
    failures: memory.failures(uid),
  } satisfies Partial<Observed>
}

/** Keys with an account count in the account, the others in their namespace. */
function accountState(apiKey: ApiKey, own: ReturnType<typeof ownState>, deps: ApiKeyDeps) {
  const { accounts, settings } = deps
  const account = accounts.ofKey(apiKey)
  const isFresh = isNew(apiKey, own)
  const hasAccount = apiKey.spec.accountRef !== undefined
  const required = settings.accountRequiredNamespaces
  const accountLimit = accountLimitOf(apiKey, account, isFresh, deps)
  return {
    isNew: isFresh,
    account,
    plan: accounts.planOfAccount(account?.uid ?? own.entry?.account),
    isAccountRequired: required.includes('*') || required.includes(namespaceOf(apiKey)),
    hasAccounts: settings.hasAccounts,
    accountLimit,
    spareKey: accountLimit?.of === 'AllKeys' ? spareKeyOf(apiKey, deps) : undefined,
    namespaceLimit: isFresh && !hasAccount ? limitOf(namespaceOf(apiKey), deps) : undefined,
  }
}

/** The bound of keys, if the account has no place for this key. Keys that have a place keep it; of the others the oldest come first. */
function accountLimitOf(apiKey: ApiKey, account: KeyAccount | undefined, isFresh: boolean, deps: ApiKeyDeps): AccountLimit | undefined {
  const { waiting } = deps
  const { name } = apiKey.spec.accountRef ?? {}
  if (name === undefined) return undefined
  if (!isFresh || isEnding(apiKey)) {
    waiting.delete(name, ageOf(apiKey))
    return undefined
  }
  const ahead = waiting.add(name, { ...ageOf(apiKey), ...refOf(apiKey) })
  return account && fullAt(account, ahead, deps)
}

/** @param ahead keys that wait and come first @returns the bound of keys of the account, if it is reached */
function fullAt({ uid, planSpec }: KeyAccount, ahead: number, { accounts, subjects }: ApiKeyDeps): AccountLimit | undefined {
  if (uid === undefined || planSpec === undefined) return undefined
  const { keys } = accounts
  const { maxKeys } = planSpec
  if (keys.activeOf(uid, maxKeys, subjects.timeMs() ?? 0) + ahead >= maxKeys) return { most: maxKeys, of: 'ActiveKeys' }
  const most = 2 * maxKeys + SPARE_KEYS
  return keys.countOf(uid) + ahead >= most ? { most, of: 'AllKeys' } : undefined
}

function spareKeyOf({ spec }: ApiKey, { apiKeys, settings }: ApiKeyDeps): Observed['spareKey'] {
  const spare = firstToRetire(apiKeys.byIndex(ACCOUNT_INDEX, spec.accountRef?.name ?? ''), settings.retirement)
  return spare && { ref: refOf(spare), uid: uidOf(spare) }
}

function isEnding({ metadata, spec }: ApiKey): boolean {
  return metadata.deletionTimestamp !== undefined || spec.state === 'Revoked'
}

/** Models without a price or a bound, listed only if a budget of the key depends on them. */
function modelsThatLack(
  apiKey: ApiKey,
  { models, accounts }: ApiKeyDeps,
): Pick<Observed, 'unpricedModels' | 'isUnpriced' | 'unboundedModels'> {
  const account = accounts.ofKey(apiKey)
  const { budgets, models: allowed } = policyOf(apiKey, undefined, accounts.planOfAccount(account?.uid))
  const blocking = budgets.filter(({ onExceeded }) => onExceeded === 'Block')
  const lacking = (lack: 'isPriced' | 'isBounded') => models.lacking(lack, namespaceOf(apiKey), allowed)
  const unpricedModels = needsPrices(budgets) || account?.needsPrices === true ? lacking('isPriced') : []
  return {
    unpricedModels,
    isUnpriced: unpricedModels.length > 0 && !models.hasPriced(namespaceOf(apiKey), allowed),
    unboundedModels: blocking.length > 0 ? lacking('isBounded') : [],
  }
}

function isNew({ status }: ApiKey, { entry, isUnreadable }: ReturnType<typeof ownState>): boolean {
  return entry === undefined && !isUnreadable && status?.keyID === undefined
}

/** Whether no record was ever written for this key, so that the absence of a record proves nothing. */
function isUnmade({ metadata, spec }: ApiKey, { entry, isUnreadable }: ReturnType<typeof ownState>): boolean {
  return entry === undefined && !isUnreadable && metadata.deletionTimestamp === undefined && spec.state !== 'Revoked'
}

function limitOf(namespace: string, { keyring, settings: { maxApiKeysPerNamespace: most } }: ApiKeyDeps): number | undefined {
  return keyring.countIn(namespace) >= most ? most : undefined
}

/** What keeps a key from the hash of its manifest, and what its owner must know about the hash. */
function valueState(
  apiKey: ApiKey,
  entry: KeyringEntry | undefined,
  deps: ApiKeyDeps,
): Pick<Observed, 'isDuplicate' | 'mayBeUnproven' | 'valueUse' | 'unrecordedHashes' | 'isNamedElsewhere'> {
  const { usedValues, apiKeys } = deps
  const namespace = namespaceOf(apiKey)
  const source = hashSource(apiKey)
  const taken = (entry?.verifiers ?? []).filter(({ origin }) => origin === 'Hash')
  const working = taken.filter((one) => isAliveAt(one, timeOf(deps).now)).map(({ hash }) => hash)
  const isElsewhere = ({ metadata }: ApiKey): boolean => metadata.namespace !== namespace && metadata.deletionTimestamp === undefined
  return {
    isDuplicate: isDuplicate(apiKey, entry, deps),
    mayBeUnproven: mayBeUnproven(namespace, deps),
    valueUse: source ? usedValues.useOf(source.hash, namespace, source.proof !== undefined) : 'New',
    unrecordedHashes:
      apiKey.spec.state === 'Revoked' ? taken.map(({ hash }) => hash).filter((hash) => !usedValues.isRevoked(hash, namespace)) : [],
    isNamedElsewhere:
      source !== undefined && [...hashesOf(apiKey), ...working].some((hash) => [...apiKeys.byIndex(HASH_INDEX, hash)].some(isElsewhere)),
  }
}

function mayBeUnproven(namespace: string, { settings: { unprovenHashNamespaces: allowed } }: Pick<ApiKeyDeps, 'settings'>): boolean {
  return allowed.includes('*') || allowed.includes(namespace)
}

/**
 * Whether another key has the value. Gateways could not decide whose limits apply, so one key of a namespace holds a value, and a value without
 * a proof has one holder at all. The present holder keeps the value against every later claim: otherwise a user who learns a hash could take
 * over the traffic of a working key. Without a holder, the oldest ApiKey gets the value. With a proof, other namespaces do not matter: the
 * gateway admits the key whose proof was made from the value, so a false claim locks nobody out. A value that this operator has made belongs to
 * its key alone, even if the value has leaked.
 * @param entry the newest entry of the ApiKey
 */
export function isDuplicate(
  apiKey: ApiKey,
  entry: KeyringEntry | undefined,
  deps: Pick<ApiKeyDeps, 'keyring' | 'apiKeys' | 'settings'>,
): boolean {
  const { keyring, apiKeys } = deps
  const source = hashSource(apiKey)
  if (source === undefined) return false
  const uid = uidOf(apiKey)
  const own = verifierOfHash(source, entry?.verifiers)
  const competes = (namespace: string | undefined): boolean => source.proof === undefined || namespace === namespaceOf(apiKey)
  const others = [...keyring.holdersOf(source.hash)].filter(
    (other) => other.uid !== uid && (competes(other.namespace) || isGenerated(other, source)),
  )
  if (own !== undefined) return others.some((other) => isEarlier(other, source, { uid, createdMs: own.createdMs }))
  if (others.length > 0) return true
  const isRival = (rival: ApiKey): boolean =>
    rival.metadata.deletionTimestamp === undefined &&
    competes(rival.metadata.namespace) &&
    (hashSource(rival)?.proof !== undefined || mayBeUnproven(namespaceOf(rival), deps))
  return [...apiKeys.byIndex(HASH_INDEX, source.hash)].some((rival) => isRival(rival) && isOlder(ageOf(rival), ageOf(apiKey)))
}

function isGenerated({ verifiers }: KeyringEntry, source: HashSource): boolean {
  return verifierOfHash(source, verifiers)?.origin === undefined
}

/** Whether the other of two entries with one value had the value first, and so keeps it. Only a restore makes two such entries. */
function isEarlier({ uid, verifiers }: KeyringEntry, source: HashSource, own: Aged): boolean {
  const theirs = verifierOfHash(source, verifiers)
  return theirs !== undefined && isOlder({ uid, createdMs: theirs.createdMs }, own)
}

export function ageOf(apiKey: ApiKey): Aged {
  return { uid: uidOf(apiKey), createdMs: createdMs(apiKey) }
}
