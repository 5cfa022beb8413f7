/** Observes the state of one ApiKey from the memory of this process, without any call. Decides nothing. */
import { ACCOUNTS_FEATURE, LIMITS_FEATURE } from '#contract/records/format.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import { createdMs, namespaceOf, type ObjectRef, refOf, uidOf } from '#kube/port.ts'
import { type Aged, isOlder } from '#policy/age-list.ts'
import type { KeyAccount } from '../../accounts/accounts.ts'
import type { ApiKeyDeps } from './kind.ts'
import { HASH_INDEX, type HashSource, hashSource, verifierOfHash } from './hash-source.ts'
import { currentVerifier, policyOf, recordText } from './keyring-entry.ts'
import type { Observed } from './observed.ts'

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
    isDuplicate: isDuplicate(apiKey, own.entry, deps),
    ...accountState(apiKey, own, deps),
    gatewayLimits: deps.limits.supports(LIMITS_FEATURE),
    gatewayAccounts: deps.limits.supports(ACCOUNTS_FEATURE),
    usage: deps.shownUsage.shown(uid),
    spendLoss: deps.subjects.ledger?.loss(uid),
    ...modelsThatLack(apiKey, deps),
  }
}

function ownState({ metadata }: ApiKey, { keyring, memory, vault, clock, version }: ApiKeyDeps) {
  const { uid = '', generation = 0 } = metadata
  const now = clock.now()
  const entry = keyring.pending(uid) ?? keyring.get(uid)
  const verifier = currentVerifier(entry)
  return {
    isConfirmedLive: memory.isConfirmedLive(uid, metadata.resourceVersion),
    entry,
    isCommitting: keyring.state(uid) === 'Pending',
    isUnreadable: keyring.isUnreadable(uid),
    verifier,
    secret: memory.secret(uid, generation),
    isSecretWritable: memory.isSecretWritable(uid),
    holdsCredential: verifier !== undefined && vault.get(verifier.id) !== undefined,
    version: version(),
    now,
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
  return {
    isNew: isFresh,
    account,
    plan: accounts.planOfAccount(account?.uid ?? own.entry?.account),
    isAccountRequired: required.includes('*') || required.includes(namespaceOf(apiKey)),
    accountLimit: accountLimitOf(apiKey, account, isFresh, deps),
    namespaceLimit: isFresh && !hasAccount ? limitOf(namespaceOf(apiKey), deps) : undefined,
  }
}

/** The bound of keys, if the account has no place for this key. Keys that have a place keep it; of the others the oldest come first. */
function accountLimitOf(apiKey: ApiKey, account: KeyAccount | undefined, isFresh: boolean, deps: ApiKeyDeps): number | undefined {
  const { accounts, waiting } = deps
  const { name } = apiKey.spec.accountRef ?? {}
  if (name === undefined) return undefined
  if (!isFresh || isEnding(apiKey)) {
    waiting.delete(name, ageOf(apiKey))
    return undefined
  }
  const ahead = waiting.add(name, { ...ageOf(apiKey), ...refOf(apiKey) })
  return account && fullAt(account, ahead, accounts)
}

/** @param ahead keys that wait and come first @returns the bound of keys of the account, if it is reached */
function fullAt({ uid, planSpec }: KeyAccount, ahead: number, { keys }: ApiKeyDeps['accounts']): number | undefined {
  if (uid === undefined || planSpec === undefined) return undefined
  return keys.activeOf(uid, planSpec.maxKeys) + ahead >= planSpec.maxKeys ? planSpec.maxKeys : undefined
}

function isEnding({ metadata, spec }: ApiKey): boolean {
  return metadata.deletionTimestamp !== undefined || spec.state === 'Revoked'
}

/** Models without a price or a bound, listed only if a budget of the key depends on them. */
function modelsThatLack(apiKey: ApiKey, { models, accounts }: ApiKeyDeps): Pick<Observed, 'unpricedModels' | 'unboundedModels'> {
  const { budgets, models: allowed } = policyOf(apiKey, undefined, accounts.planOfAccount(accounts.ofKey(apiKey)?.uid))
  const blocking = budgets.filter(({ onExceeded }) => onExceeded === 'Block')
  const lacking = (lack: 'isPriced' | 'isBounded') => models.lacking(lack, namespaceOf(apiKey), allowed)
  return {
    unpricedModels: blocking.some(({ unit }) => unit === 'Currency') ? lacking('isPriced') : [],
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

/**
 * Whether another key has the value. Gateways could not decide whose limits apply, so one key holds a value. The present holder keeps the
 * value against every later claim: otherwise a user who learns a hash could take over the traffic of a working key. Without a holder, the
 * oldest ApiKey gets the value.
 * @param entry the newest entry of the ApiKey
 */
export function isDuplicate(
  apiKey: ApiKey,
  entry: KeyringEntry | undefined,
  { keyring, apiKeys }: Pick<ApiKeyDeps, 'keyring' | 'apiKeys'>,
): boolean {
  const source = hashSource(apiKey)
  if (source === undefined) return false
  const uid = uidOf(apiKey)
  const own = verifierOfHash(source, entry?.verifiers)
  const others = [...keyring.holdersOf(source.hash)].filter((other) => other.uid !== uid)
  if (own !== undefined) return others.some((other) => isEarlier(other, source, { uid, createdMs: own.createdMs }))
  if (others.length > 0) return true
  const rivals = [...apiKeys.byIndex(HASH_INDEX, source.hash)].filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  return rivals.some((rival) => isOlder(ageOf(rival), ageOf(apiKey)))
}

/** Whether the other of two entries with one value had the value first, and so keeps it. Only a restore makes two such entries. */
function isEarlier({ uid, verifiers }: KeyringEntry, source: HashSource, own: Aged): boolean {
  const theirs = verifierOfHash(source, verifiers)
  return theirs !== undefined && isOlder({ uid, createdMs: theirs.createdMs }, own)
}

export function ageOf(apiKey: ApiKey): Aged {
  return { uid: uidOf(apiKey), createdMs: createdMs(apiKey) }
}
