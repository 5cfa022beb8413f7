/**
 * The state machine of an ApiKey: derives the next step from the observed state. Pure. Every run starts from the top, so that a crash between
 * any two steps is just another observation. The order of the checks is the order of the promises: nothing is minted before the finalizer;
 * nothing is live before it is durable; nothing is readable before it is live; edits that restrict go before all others.
 */
import { type KeyringEntry, type KeyringVerifier, sameEntry } from '#contract/records/keyring-entry.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { budgetsWithoutZone } from '#api/key-policy.ts'
import { sameStatus } from '#api/condition-list.ts'
import { type Check, firstAnswer } from '../../loop/reconciler.ts'
import { hashFacts, hashRefusal, hashSource, isHashKey, isHashReported, verifierOfHash, wantedVerifiers } from './hash-source.ts'
import { isDelivered, isKeyLost, isLateWrite, isNameTaken, restorable, wasProgrammed } from './key-state.ts'
import { refOf, uidOf } from '#kube/port.ts'
import { isSettled } from '../../projection/programmed.ts'
import { DELETED_STEPS } from './deletion-steps.ts'
import { accountRefusal } from './key-account.ts'
import { entryOf, restricts, stops, withState } from './keyring-entry.ts'
import type { Failure, Observed } from './observed.ts'
import { RETIREMENT_CHECK_MS } from './retirement.ts'
import { statusOf } from './status.ts'
import {
  type Answer,
  deleteOwnSecret,
  isWaitingForKeyring,
  keyringRetryMs,
  levelOf,
  recordRevocation,
  type Step,
  wasRefused,
} from './step.ts'

/** Longest wait for the gateways before a new key is issued, ms: one stuck pod must not block issuing. */
const ISSUE_WAIT_MS = 5_000
/** Longest wait for the gateways before the status is written, ms. The wait lets one write report the result. */
const STATUS_WAIT_MS = 1_000
/** Longest wait for a new account before the status of its key says so, ms. */
const ACCOUNT_WAIT_MS = 10_000
/** Time between two checks of states that cause no event, ms: a taken name, a full namespace. */
const BLOCKED_RETRY_MS = 60_000
const LEFT_OVER_RETRY_MS = 500

type KeyCheck = Check<Observed, Step>

/** @returns the next step, a wait for an event, or undefined if the cluster matches the manifest */
export function nextStep(observed: Observed): Answer {
  return firstAnswer(observed.apiKey.metadata.deletionTimestamp === undefined ? LIVING : DELETED_STEPS, observed)
}

export function reportStep(observed: Observed): Step | undefined {
  const { apiKey } = observed
  if (apiKey.metadata.deletionTimestamp !== undefined || isStale(observed)) return undefined
  if (sameStatus(statusOf(observed), apiKey.status)) return undefined
  return { do: 'write-status', level: 'background' }
}

const LIVING: readonly KeyCheck[] = [
  readStale,
  protect,
  holdByFinalizer,
  awaitRetry,
  reportUnreadable,
  takeHash,
  restoreLost,
  settleMaterial,
  deleteLateWrite,
  voidUndelivered,
  commitEdit,
  mint,
  project,
  deliver,
  removeRevoked,
  awaitGateways,
  awaitDelivery,
  awaitAccount,
  makeRoom,
  checkSecret,
  reportStep,
  recordRevocation,
  awaitEvents,
  retire,
]

/**
 * Reads the ApiKey live if the cache is older than the entry: a standby's watch may have been cut off. Trusting the cache would lift
 * a suspension or a deletion. A live read with an older generation is trusted: the cluster was restored from a backup.
 */
function readStale(observed: Observed): Answer {
  return isStale(observed) ? { do: 'read-live', level: 'change' } : undefined
}

function isStale({ apiKey, entry, isConfirmedLive }: Observed): boolean {
  if (entry === undefined || isConfirmedLive) return false
  return entry.deletedMs !== null || (apiKey.metadata.generation ?? 0) < entry.generation
}

/**
 * Commits an edit that restricts. Such an edit waits for nothing, not even for a commit under way. While a key is edited many times a second,
 * only removed models and earlier ends wait like other edits: otherwise their revisions would have no bound.
 */
function protect(observed: Observed): Answer {
  const { entry } = observed
  if (entry === undefined || entry.deletedMs !== null || isWaitingForKeyring(observed)) return undefined
  const wanted = wantedEntry(observed, entry.verifiers)
  if (sameEntry(entry, wanted) || !restricts(entry, wanted, observed.now)) return undefined
  if (stops(entry, wanted, observed.now)) return { do: 'commit', level: 'urgent', entry: wanted, isUncounted: true }
  return observed.revisionInMs > 0 ? undefined : { do: 'commit', level: 'urgent', entry: wanted }
}

function holdByFinalizer({ apiKey }: Observed): Answer {
  return apiKey.metadata.finalizers?.includes(FINALIZER) ? undefined : { do: 'add-finalizer', level: levelOf(apiKey.status !== undefined) }
}

/** Waits for the result of another try: until then neither the gateways nor the status follow an entry that the keyring has refused before. */
function awaitRetry(observed: Observed): Answer {
  return observed.isCommitting && wasRefused(observed) ? { do: 'wait' } : undefined
}

/**
 * Leaves an entry of a newer version and its record unchanged, and decides nothing about the key. If the owner has suspended or revoked the
 * key, the operator still removes the record from the gateways. If the key works again, the operator cannot write its record, so gateways must
 * know that a key is lacking.
 */
function reportUnreadable(observed: Observed): Answer {
  if (!observed.isUnreadable) return undefined
  return projectUnreadable(observed) ?? reportStep(observed) ?? { do: 'wait' }
}

function projectUnreadable({ apiKey, projected, isProjecting, storeAvailable, hasStandIn }: Observed): Answer {
  if (isProjecting || !storeAvailable) return undefined
  const isAbsent = projected !== undefined
  if (apiKey.spec.state !== 'Active') return isAbsent ? undefined : { do: 'project', level: 'urgent' }
  return isAbsent && !hasStandIn ? { do: 'project', level: 'change' } : undefined
}

/**
 * Takes the hash of the manifest, durable and live at once. Only a rotation that ends the former value is urgent. A hash without a proof is
 * recorded before, so that no other namespace gets it when this key is gone.
 */
function takeHash(observed: Observed): Answer {
  const { entry, apiKey } = observed
  const source = hashSource(apiKey)
  if (source === undefined || verifierOfHash(source, entry?.verifiers) || !mayTakeHash(observed)) return undefined
  if (source.proof === undefined && observed.valueUse === 'New')
    return { do: 'record-values', level: levelOf(entry !== undefined), hashes: [source.hash], isRevoked: false }
  if (observed.revisionInMs > 0) return { do: 'wait', forMs: observed.revisionInMs }
  return entry === undefined
    ? { do: 'take-hash', level: levelOf(apiKey.status !== undefined), id: formerID(apiKey) }
    : { do: 'take-hash', level: source.overlapMs === 0 ? 'urgent' : 'change', id: undefined }
}

/** The id that the status gives to the hash of the manifest, if the keyring has lost the key. */
function formerID(apiKey: ApiKey): string | undefined {
  return isHashReported(apiKey) ? apiKey.status?.keyID : undefined
}

function mayTakeHash(observed: Observed): boolean {
  const { apiKey, entry, namespaceLimit } = observed
  if (apiKey.spec.state === 'Revoked' || hashRefusal(observed) !== undefined || isWaitingForKeyring(observed)) return false
  return (
    entry !== undefined ||
    (namespaceLimit === undefined && accountRefusal(observed) === undefined && budgetsWithoutZone(apiKey.spec).length === 0)
  )
}

function restoreLost(observed: Observed): Answer {
  const { entry, apiKey, secret } = observed
  if (entry !== undefined || apiKey.status?.keyID === undefined || isWaitingForKeyring(observed)) return undefined
  if (isHashKey(apiKey) || isAccountUnknown(observed)) return undefined
  if (secret.state === 'Unknown') return { do: 'read-secret', level: 'change' }
  const verifier = restorable(observed)
  if (verifier) return { do: 'commit', level: 'change', entry: wantedEntry(observed, [verifier]), isRestored: true }
  return recoverKept(observed)
}

function recoverKept({ mayBeInRedis, storeAvailable }: Observed): Answer {
  return mayBeInRedis && storeAvailable ? { do: 'recover', level: 'change' } : undefined
}

/** Whether the account that the manifest names is not known by its uid: a restored entry would have no account. */
function isAccountUnknown({ apiKey, account }: Observed): boolean {
  return apiKey.spec.accountRef !== undefined && account?.uid === undefined
}

/** A minted verifier becomes Issued if the Secret holds its value, or the status says that the Secret did. */
function settleMaterial(observed: Observed): Answer {
  const { entry, verifier } = observed
  if (entry === undefined || verifier?.state !== 'Minted') return undefined
  if (!isDelivered(observed, verifier) && !wasIssued(observed, verifier)) return undefined
  return { do: 'mark-issued', level: 'change', entry: wantedEntry(observed, withState(entry.verifiers, verifier, 'Issued')) }
}

/** Deletes a Secret with a generated value that is not the value of the key. No user wrote that value. */
function deleteLateWrite(observed: Observed): Answer {
  const { verifier, apiKey } = observed
  if (verifier?.state === 'Issued' || apiKey.spec.state === 'Revoked' || !isLateWrite(observed)) return undefined
  return deleteOwnSecret(observed)
}

/** Voids a generation whose value cannot be delivered: this process no longer holds the value, or the Secret cannot be written. */
function voidUndelivered(observed: Observed): Answer {
  const { entry, verifier, secret } = observed
  if (entry === undefined || verifier?.state !== 'Minted' || isWaitingForKeyring(observed)) return undefined
  const isPossible = observed.holdsCredential && observed.apiKey.spec.state !== 'Revoked'
  if (!isPossible && secret.state === 'Unknown') return { do: 'read-secret', level: 'change' }
  if (isPossible && !isRefused(observed)) return undefined
  return { do: 'commit', level: 'change', entry: wantedEntry(observed, withState(entry.verifiers, verifier, 'Voided')) }
}

/** Commits a changed manifest. Many edits of one key become few revisions. */
function commitEdit(observed: Observed): Answer {
  const { entry } = observed
  if (entry === undefined || isWaitingForKeyring(observed)) return undefined
  const wanted = wantedEntry(observed, entry.verifiers)
  if (sameEntry(entry, wanted)) return undefined
  if (observed.revisionInMs > 0) return { do: 'wait', forMs: observed.revisionInMs }
  return { do: 'commit', level: 'change', entry: wanted }
}

function mint(observed: Observed): Answer {
  const { entry, secret, failures } = observed
  if (!needsMaterial(observed) || !mayMint(observed)) return undefined
  const level = levelOf(entry !== undefined)
  if (entry !== undefined || failures.some(({ topic }) => topic === 'SecretWrite')) {
    if (secret.state === 'Unknown') return { do: 'read-secret', level }
    if (!observed.isSecretWritable) return { do: 'try-secret', level }
  }
  return { do: 'mint', level, number: Math.max(0, ...(entry?.verifiers ?? []).map(({ number }) => number)) + 1 }
}

function needsMaterial(observed: Observed): boolean {
  const { apiKey, verifier } = observed
  if (isHashKey(apiKey)) return false
  return verifier === undefined && apiKey.spec.state !== 'Revoked' && !isNameTaken(observed) && !isKeyLost(observed)
}

function mayMint(observed: Observed): boolean {
  const { namespaceLimit, storeAvailable, isCommitting, apiKey } = observed
  const isAccepted = namespaceLimit === undefined && accountRefusal(observed) === undefined && budgetsWithoutZone(apiKey.spec).length === 0
  return isAccepted && storeAvailable && !isCommitting && !isWaitingForKeyring(observed)
}

/** Durable entries go to the gateways. A key revoked before it was minted is still written as absent, so that gateways can acknowledge it. */
function project(observed: Observed): Answer {
  const { entry, apiKey, projected, storeAvailable } = observed
  if (entry === undefined && apiKey.spec.state !== 'Revoked') return undefined
  if (observed.isCommitting && observed.verifier?.state === 'Minted') return undefined // not durable yet
  if (projected !== undefined || observed.isProjecting || !storeAvailable || isStricterOnGateways(observed)) return undefined
  return { do: 'project', level: 'change' }
}

/** Whether the gateways have an edit that restricts, which the keyring refused: the older entry must not lift the restriction. */
function isStricterOnGateways(observed: Observed): boolean {
  const { entry } = observed
  return entry !== undefined && isWaitingForKeyring(observed) && restricts(entry, wantedEntry(observed, entry.verifiers), observed.now)
}

/** Writes the Secret once the gateways have the key, so that every value that a workload can read works. */
function deliver(observed: Observed): Answer {
  const { verifier, projected } = observed
  if (verifier?.state !== 'Minted' || projected === undefined || observed.isCommitting) return undefined
  if (isSettled(observed)) return { do: 'write-secret', level: 'change', verifier }
  return projected.forMs >= ISSUE_WAIT_MS
    ? { do: 'write-secret', level: 'change', verifier }
    : { do: 'wait', forMs: ISSUE_WAIT_MS - projected.forMs }
}

/** Deletes the Secret of a revoked key when the gateways refuse the key, or after a bounded wait. */
function removeRevoked(observed: Observed): Answer {
  const { apiKey, secret, projected } = observed
  if (apiKey.spec.state !== 'Revoked') return undefined
  if (isOnItsWay(observed)) return { do: 'wait', forMs: STATUS_WAIT_MS }
  if (!isSettled(observed) && projected !== undefined && projected.forMs < STATUS_WAIT_MS) {
    return { do: 'wait', forMs: STATUS_WAIT_MS - projected.forMs }
  }
  if (isHashKey(apiKey)) return undefined
  if (secret.state === 'Unknown') return { do: 'read-secret', level: 'background' }
  return deleteOwnSecret(observed)
}

/** Delays the status for a second, so that one write reports the result of the gateways. */
function awaitGateways(observed: Observed): Answer {
  const { projected } = observed
  if (isOnItsWay(observed)) return { do: 'wait', forMs: STATUS_WAIT_MS }
  if (projected === undefined || wasProgrammed(observed) || isSettled(observed)) return undefined
  return projected.forMs < STATUS_WAIT_MS ? { do: 'wait', forMs: STATUS_WAIT_MS - projected.forMs } : undefined
}

/** Whether a write to Redis is under way: an event follows within milliseconds, or Redis counts as unreachable. */
function isOnItsWay({ isProjecting, storeAvailable, verifier }: Observed): boolean {
  return isProjecting && storeAvailable && verifier?.state !== 'Minted'
}

/** Delays the status of a new key or a new value until it is issued, to save a write, unless a step is slow or fails. */
function awaitDelivery(observed: Observed): Answer {
  const { verifier, isCommitting, isProjecting, failures, now } = observed
  if (verifier === undefined || !isNotReported(observed, verifier) || failures.length > 0 || !(isCommitting || isProjecting))
    return undefined
  const ageMs = Math.max(0, now - verifier.createdMs)
  return ageMs < ISSUE_WAIT_MS ? { do: 'wait', forMs: ISSUE_WAIT_MS - ageMs } : undefined
}

/** Delays the status of a new key whose account was created with it, until the books of the account are open. */
function awaitAccount({ account, isNew, now }: Observed): Answer {
  if (!isNew || account?.isOpening !== true) return undefined
  const ageMs = Math.max(0, now - account.createdMs)
  return ageMs < ACCOUNT_WAIT_MS ? { do: 'wait', forMs: ACCOUNT_WAIT_MS - ageMs } : undefined
}

/** Whether the status does not name this value yet. A status names only durable ids, because a crash could lose any other id. */
function isNotReported({ apiKey }: Observed, { id, state }: KeyringVerifier): boolean {
  return state === 'Minted' || (isHashKey(apiKey) && apiKey.status?.keyID !== id)
}

/** Reads the Secret of an issued key for the status, and refreshes an outdated Secret. */
function checkSecret({ apiKey, secret, verifier }: Observed): Answer {
  if (isHashKey(apiKey) || verifier?.state !== 'Issued') return undefined
  if (secret.state === 'Unknown') return { do: 'read-secret', level: 'background' }
  return secret.state === 'Ours' && !secret.current ? { do: 'refresh-secret', level: 'background' } : undefined
}

/** Acknowledgements and Redis enqueue the object. States that cause no event are checked again after a time. */
function awaitEvents(observed: Observed): Answer {
  const forMs = recheckMs(observed)
  if (forMs !== undefined) return { do: 'wait', forMs }
  const isUnderWay = observed.isCommitting || observed.isProjecting || !observed.storeAvailable
  const isUnproven = observed.projected !== undefined && !wasProgrammed(observed) && !isSettled(observed)
  return isUnderWay || isUnproven ? { do: 'wait' } : undefined
}

/** Makes room for this ApiKey in its account, where revoked keys of a person fill it. */
function makeRoom({ spareKey }: Observed): Answer {
  return spareKey && { do: 'delete-key', level: 'change', ...spareKey }
}

/** Deletes the ApiKey of a key that was revoked long ago, and whose end every gateway has acknowledged. Its usage stays. */
function retire({ apiKey, retiresAtMs, now, isTimeKnown }: Observed): Answer {
  if (retiresAtMs === undefined) return undefined
  const leftMs = isTimeKnown ? retiresAtMs - now : RETIREMENT_CHECK_MS
  return leftMs <= 0
    ? { do: 'delete-key', level: 'background', ref: refOf(apiKey), uid: uidOf(apiKey) }
    : { do: 'wait', forMs: Math.min(leftMs, RETIREMENT_CHECK_MS) }
}

/** @returns ms until the next check of a state that causes no event */
function recheckMs(observed: Observed): number | undefined {
  if (isWaitingForKeyring(observed)) return keyringRetryMs(observed)
  if (observed.secret.state === 'LeftOver') return LEFT_OVER_RETRY_MS
  const { namespaceLimit, accountLimit, isDuplicate } = observed
  const isBlocked = isNameTaken(observed) || namespaceLimit !== undefined || accountLimit !== undefined || isDuplicate
  return isBlocked ? BLOCKED_RETRY_MS : undefined
}

function wantedEntry(observed: Observed, verifiers: readonly KeyringVerifier[]): KeyringEntry {
  const { apiKey, account, entry, version } = observed
  const wanted = wantedVerifiers(apiKey, hashFacts(observed, verifiers))
  return entryOf(apiKey, { account, verifiers: wanted, revision: entry?.revision ?? 0, version, former: entry })
}

const REFUSALS: ReadonlySet<Failure['code']> = new Set([
  'QuotaExceeded',
  'AdmissionDenied',
  'Forbidden',
  'Invalid',
  'NamespaceTerminating',
  'Other',
])

/** Whether the Secret cannot be written. A later try may succeed, but this process must not hold the value until then. */
function isRefused(observed: Observed): boolean {
  return isNameTaken(observed) || observed.failures.some(({ topic, code }) => topic === 'SecretWrite' && REFUSALS.has(code))
}

/** Whether the status says that the value was delivered. The status may exist although a crash lost the mark in the keyring. */
function wasIssued({ apiKey }: Observed, verifier: KeyringVerifier): boolean {
  return apiKey.status?.verifiers?.some(({ id }) => id === verifier.id) === true
}
