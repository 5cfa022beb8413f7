/**
 * The state machine of an ApiKey: from what is observed to the next step. Pure, and always from the top, so that a crash between any two
 * steps is just another observation. The order of the checks is the order of the promises:
 * nothing is minted before the finalizer; nothing is live before it is durable; nothing is readable before it is live.
 */
import type { KeyringLine, KeyringVerifier } from '../../gateway/shared/keyring-line.ts'
import { findCondition } from '../api/condition-list.ts'
import type { Observed } from './observed.ts'
import { currentVerifier, lineOf, recordText, sameLine } from './policy.ts'

/** Held from before the first side effect until revocation is proven. */
export const FINALIZER = 'headgate.dev/revoke'

/** Longest wait for the gateways before a new key is handed out, ms: one stuck pod must not block issuing. */
const ISSUE_WAIT_MS = 5_000
/** Longest wait for the gateways before the status is written, ms: so that one write carries the result. */
const STATUS_WAIT_MS = 1_000

/** One thing to do. After each, the world is observed again. */
export type Step =
  | { readonly do: 'look-at-secret' }
  | { readonly do: 'add-finalizer' }
  /** New key material, generation n: durable first. */
  | { readonly do: 'mint'; readonly n: number }
  /** Only says that the value was delivered; a crash before it is durable finds that out again. */
  | { readonly do: 'mark-issued'; readonly line: KeyringLine }
  /** Makes the line durable and live, both at once. */
  | { readonly do: 'settle'; readonly line: KeyringLine; readonly restored?: true }
  /** Makes the present line live again: durable it is. */
  | { readonly do: 'project' }
  | { readonly do: 'confirm'; readonly timeoutMs: number }
  | { readonly do: 'write-secret'; readonly verifier: KeyringVerifier }
  | { readonly do: 'refresh-secret' }
  | { readonly do: 'delete-secret'; readonly uid: string }
  | { readonly do: 'remove-finalizer'; readonly confirmed: boolean; readonly hadKey: boolean }

/** @returns the next step, or undefined when the world is as the manifest wants it (or cannot be made so now) */
export function decide(observed: Observed): Step | undefined {
  if (observed.apiKey.metadata.deletionTimestamp !== undefined) return decideDeletion(observed)
  if (!observed.apiKey.metadata.finalizers?.includes(FINALIZER)) return { do: 'add-finalizer' }
  return decideLine(observed) ?? decideProjection(observed) ?? decideSecret(observed) ?? decideConfirmation(observed)
}

/** Whether the keyring lost a key that was issued: nothing is minted silently then. */
export function isKeyLost(observed: Observed): boolean {
  return observed.line === undefined && observed.apiKey.status?.keyID !== undefined && !restorable(observed)
}

function decideLine(observed: Observed): Step | undefined {
  const { line } = observed
  const present = currentVerifier(line)
  if (present?.state !== 'Issued' && observed.secret.state === 'Unknown') return { do: 'look-at-secret' }
  if (!line) return decideRestore(observed) ?? decideMint(observed)
  return (present ? undefined : decideMint(observed)) ?? decideChange(observed, line, present)
}

function decideRestore(observed: Observed): Step | undefined {
  const restored = restorable(observed)
  return restored && { do: 'settle', line: lineOf(observed.apiKey, [restored], 0), restored: true }
}

/** The manifest has changed, or the story of the key material has gone on. */
function decideChange(observed: Observed, line: KeyringLine, present: KeyringVerifier | undefined): Step | undefined {
  const verifiers = present ? settledVerifiers(observed, line.ver, present) : line.ver
  const wanted = lineOf(observed.apiKey, verifiers, line.rev)
  if (sameLine(line, wanted)) return undefined
  return { do: recordText(wanted) === recordText(line) ? 'mark-issued' : 'settle', line: wanted }
}

/** Minted becomes Issued when its value stands in the Secret, and is voided when nobody can know its value any more. */
function settledVerifiers(observed: Observed, verifiers: readonly KeyringVerifier[], present: KeyringVerifier): readonly KeyringVerifier[] {
  if (present.state !== 'Minted') return verifiers
  if (isDelivered(observed, present) || wasIssued(observed, present)) return withState(verifiers, present, 'Issued')
  const isAwaited = observed.holdsCredential && observed.apiKey.spec.state !== 'Revoked'
  return isAwaited ? verifiers : withState(verifiers, present, 'Revoked')
}

function withState(
  verifiers: readonly KeyringVerifier[],
  of: KeyringVerifier,
  state: KeyringVerifier['state'],
): readonly KeyringVerifier[] {
  return verifiers.map((verifier) => (verifier.id === of.id ? { ...verifier, state } : verifier))
}

function decideMint(observed: Observed): Step | undefined {
  const { apiKey, line, secret, storeAvailable } = observed
  if (apiKey.spec.state === 'Revoked' || isKeyLost(observed)) return undefined
  if (isLateWrite(observed)) return deleteOwnSecret(observed)
  if (secret.state !== 'Absent' || !storeAvailable) return undefined
  return { do: 'mint', n: Math.max(0, ...(line?.ver ?? []).map((verifier) => verifier.n)) + 1 }
}

/** A key that is revoked before it was made is proven to be absent, as one that was made is proven to be refused. */
function decideProjection({ line, apiKey, projectedRev, storeAvailable }: Observed): Step | undefined {
  const isWanted = line !== undefined || apiKey.spec.state === 'Revoked'
  return isWanted && projectedRev === undefined && storeAvailable ? { do: 'project' } : undefined
}

function decideSecret(observed: Observed): Step | undefined {
  const { secret, apiKey } = observed
  if (secret.state === 'Unknown') return { do: 'look-at-secret' }
  if (apiKey.spec.state === 'Revoked') return decideRevoked(observed)
  if (secret.state === 'Absent') return decideDelivery(observed)
  if (isLateWrite(observed)) return isMinted(observed) ? deleteOwnSecret(observed) : undefined
  return secret.state === 'Ours' && !secret.current ? { do: 'refresh-secret' } : undefined
}

function isMinted({ line }: Observed): boolean {
  return currentVerifier(line)?.state === 'Minted'
}

/** The material goes when the gateways refuse it, or have had their time to. */
function decideRevoked(observed: Observed): Step | undefined {
  if (observed.secret.state !== 'Ours') return undefined
  if (!isPastWaiting(observed, STATUS_WAIT_MS)) return { do: 'confirm', timeoutMs: STATUS_WAIT_MS }
  return deleteOwnSecret(observed)
}

/** What a workload can read, works: the value is handed out when the gateways have it. */
function decideDelivery(observed: Observed): Step | undefined {
  const verifier = currentVerifier(observed.line)
  if (verifier?.state !== 'Minted' || observed.projectedRev === undefined) return undefined
  return isPastWaiting(observed, ISSUE_WAIT_MS) ? { do: 'write-secret', verifier } : { do: 'confirm', timeoutMs: ISSUE_WAIT_MS }
}

function deleteOwnSecret({ secret }: Observed): Step | undefined {
  return secret.state === 'Ours' ? { do: 'delete-secret', uid: secret.uid } : undefined
}

/** A generation that was proven programmed once is not waited for again: a restart waits for nothing and writes nothing. */
function decideConfirmation(observed: Observed): Step | undefined {
  if (observed.projectedRev === undefined || wasProgrammed(observed) || isPastWaiting(observed, STATUS_WAIT_MS)) return undefined
  return { do: 'confirm', timeoutMs: STATUS_WAIT_MS }
}

/** Whether the status already says that every gateway has this generation of the manifest and of the key material. */
export function wasProgrammed(observed: Observed): boolean {
  const { status, metadata } = observed.apiKey
  const programmed = findCondition(status?.conditions, 'Programmed')
  return (
    programmed?.status === 'True' &&
    programmed.observedGeneration === metadata.generation &&
    status?.keyID === currentVerifier(observed.line)?.id
  )
}

/** Revocation first, then its proof, then the material, and the finalizer last. Waits a bounded time and never depends on the Secret. */
function decideDeletion(observed: Observed): Step | undefined {
  const { apiKey, line, secret } = observed
  if (!apiKey.metadata.finalizers?.includes(FINALIZER)) return undefined
  if (line && line.deleted === null) return { do: 'settle', line: deletedLine(line, observed.now) }
  if (observed.projectedRev === undefined && observed.storeAvailable) return { do: 'project' }
  const proof = decideProof(observed)
  if (proof !== 'enough') return proof
  if (secret.state === 'Unknown') return { do: 'look-at-secret' }
  return deleteOwnSecret(observed) ?? removeFinalizer(observed)
}

/** 'enough' when every pod has acknowledged the revocation, or the time for that is over; undefined: look again soon. */
function decideProof(observed: Observed): Step | 'enough' | undefined {
  if (isAcknowledged(observed) || isServedByNobody(observed)) return 'enough'
  const leftMs = deletedMs(observed) + observed.revocationWaitMs - observed.now
  if (!observed.confirmation) return { do: 'confirm', timeoutMs: Math.max(0, Math.min(leftMs, STATUS_WAIT_MS)) }
  return leftMs > 0 ? undefined : 'enough'
}

function removeFinalizer(observed: Observed): Step {
  const confirmed = isAcknowledged(observed) || isServedByNobody(observed)
  return { do: 'remove-finalizer', confirmed, hadKey: (observed.line?.ver.length ?? 0) > 0 }
}

/** When the deletion was asked for, ms since 1970. */
export function deletedMs({ apiKey }: Observed): number {
  return Date.parse(apiKey.metadata.deletionTimestamp ?? '')
}

/** The line of a key that is gone: it stays a day, so that no older text revives the key. */
export function deletedLine(line: KeyringLine, now: number): KeyringLine {
  return { ...line, st: 'Revoked', ver: line.ver.map((verifier) => ({ ...verifier, state: 'Revoked' as const })), deleted: now }
}

/** Every pod that serves has the present record. */
export function isAcknowledged({ projectedRev, confirmation }: Observed): boolean {
  return (
    projectedRev !== undefined &&
    confirmation !== undefined &&
    confirmation.known &&
    confirmation.rev >= projectedRev &&
    confirmation.total > 0 &&
    confirmation.missing.length === 0
  )
}

/** The store answers and names nobody who serves. */
function isServedByNobody({ projectedRev, confirmation }: Observed): boolean {
  return projectedRev !== undefined && confirmation !== undefined && confirmation.known && confirmation.total === 0
}

function isPastWaiting(observed: Observed, waitMs: number): boolean {
  const { confirmation } = observed
  return isAcknowledged(observed) || isServedByNobody(observed) || (confirmation !== undefined && confirmation.waitedMs >= waitMs)
}

function isDelivered({ secret }: Observed, verifier: KeyringVerifier): boolean {
  return secret.state === 'Ours' && secret.hash === verifier.h
}

/** The status was written after the delivery, and may have outlived a commit that only rode along. */
function wasIssued({ apiKey }: Observed, verifier: KeyringVerifier): boolean {
  return apiKey.status?.verifiers?.some(({ id }) => id === verifier.id) === true
}

/**
 * The Secret holds a value that the operator made and that was voided, or never became durable: a call that was long under way, or a
 * deposed leader, wrote it late. Nobody's edit looks like that: check sum and id are right.
 */
function isLateWrite({ secret, line }: Observed): boolean {
  if (secret.state !== 'Ours' || secret.hash === undefined || !line) return false
  const { hash, keyID, valueID } = secret
  const owner = line.ver.find((verifier) => verifier.h === hash || verifier.id === valueID)
  return owner ? owner.h === hash && owner.state === 'Revoked' : valueID === keyID
}

/**
 * A line that the keyring lost can be made again from the user's Secret: the value must carry a right check sum and the id that the status
 * names. Without the status nothing is restored: whoever may write Secrets could otherwise choose the value of a key.
 */
function restorable({ apiKey, secret, now }: Observed): KeyringVerifier | undefined {
  if (secret.state !== 'Ours' || secret.hash === undefined || secret.keyID !== secret.valueID) return undefined
  if (apiKey.status?.keyID !== secret.keyID) return undefined
  const created = Date.parse(apiKey.status.verifiers?.[0]?.createTime ?? '') || now
  return { id: secret.keyID, h: secret.hash, exp: null, n: Math.max(1, secret.generation), state: 'Issued', created, prefix: secret.prefix }
}
