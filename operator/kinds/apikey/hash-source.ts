/** Derives the verifiers of keys with `source.type: Hash`: their value exists elsewhere, and the manifest has its SHA-256. Pure. */
import { hashCredential, type KeyHash, keyHashFromHex, type KeyProof, keyProofFromHex } from '#contract/values/credential.ts'
import { isLive, type KeyringVerifier } from '#contract/records/keyring-entry.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { type ApiKey, DEFAULT_OVERLAP_SECONDS } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import type { Observed } from './observed.ts'

export const HASH_INDEX = 'hash'
/** Maximum number of live values of one key. */
const MAX_LIVE = 4

export interface HashSource {
  readonly hash: KeyHash
  /** For display; '' if the manifest has no hint. */
  readonly hint: string
  /** undefined: the hash stands alone. */
  readonly proof: KeyProof | undefined
  /** Time for which a former value works, ms. */
  readonly overlapMs: number
}

export interface HashFacts {
  readonly verifiers: readonly KeyringVerifier[]
  /** The manifest is newer than the keyring entry: a shorter overlap counts from now. */
  readonly isEdited: boolean
  readonly isDuplicate: boolean
  /** Whether a hash needs no proof in the namespace of the key. */
  readonly mayBeUnproven: boolean
  /** ms since 1970. */
  readonly now: number
  readonly isTimeKnown: boolean
}

/** The facts of one observed key. @param verifiers the present verifiers */
export function hashFacts(
  { apiKey, entry, isDuplicate, mayBeUnproven, now, isTimeKnown }: Observed,
  verifiers: readonly KeyringVerifier[] = entry?.verifiers ?? [],
): HashFacts {
  const isEdited = entry !== undefined && entry.generation < (apiKey.metadata.generation ?? 0)
  return { verifiers, isEdited, isDuplicate, mayBeUnproven, now, isTimeKnown }
}

/** @returns undefined for a key whose value the operator generates */
export function hashSource({ spec }: Pick<ApiKey, 'spec'>): HashSource | undefined {
  const { source, rotation } = spec
  if (source?.type !== 'Hash' || source.hash === undefined) return undefined
  const { sha256, hint = '', proof } = source.hash
  return {
    hash: keyHashFromHex(sha256),
    hint,
    proof: proof === undefined ? undefined : keyProofFromHex(proof),
    overlapMs: (rotation?.overlapSeconds ?? DEFAULT_OVERLAP_SECONDS) * 1000,
  }
}

export function isHashKey(apiKey: Pick<ApiKey, 'spec'>): boolean {
  return hashSource(apiKey) !== undefined
}

export function hashesOf(apiKey: ApiKey): readonly KeyHash[] {
  const source = hashSource(apiKey)
  return source === undefined ? [] : [source.hash]
}

/** Whether the hint is the value itself, which every reader of the manifest can see. */
function isHintTheValue(source: HashSource): boolean {
  return source.hint !== '' && hashCredential(source.hint) === source.hash
}

/** The hint for the status, or '' if the hint is the value. */
function shownHint(source: HashSource): string {
  return isHintTheValue(source) ? '' : source.hint
}

/** Why the hash of the manifest is not taken; undefined: it may be, or the key has it already. */
export type HashRefusal = 'Duplicate' | 'HintIsTheValue' | 'ProofRequired' | 'ValueUsed' | 'TooManyValues' | 'GatewayTooOld'

export function hashRefusal(observed: Observed): HashRefusal | undefined {
  const source = hashSource(observed.apiKey)
  if (source === undefined) return undefined
  const isNew = verifierOfHash(source, observed.entry?.verifiers) === undefined
  if (isNew && source.proof === undefined && !observed.mayBeUnproven) return 'ProofRequired' // does not say whether another key has the value
  if (observed.isDuplicate) return 'Duplicate'
  if (isHintTheValue(source)) return 'HintIsTheValue'
  return isNew ? newHashRefusal(observed, source) : undefined
}

function newHashRefusal({ valueUse, gatewayProofs }: Observed, { proof }: HashSource): HashRefusal | undefined {
  if (valueUse === 'Taken') return 'ValueUsed'
  if (valueUse === 'Full') return 'TooManyValues'
  return proof !== undefined && gatewayProofs === 'TooOld' ? 'GatewayTooOld' : undefined
}

/** @returns the live verifier with the hash of the manifest */
export function verifierOfHash({ hash }: HashSource, verifiers: readonly KeyringVerifier[] = []): KeyringVerifier | undefined {
  return verifiers.find((verifier) => verifier.hash === hash && isLive(verifier))
}

/** Whether an edit may end a working value: another hash without an overlap, or a shorter overlap. */
export function endsFormerValue(before: ApiKey, after: ApiKey): boolean {
  const [former, present] = [hashSource(before), hashSource(after)]
  if (former === undefined || present === undefined) return false
  return (former.hash !== present.hash && present.overlapMs === 0) || present.overlapMs < former.overlapMs
}

/**
 * The wanted verifiers of a key. A value that the manifest no longer names works until the end of its overlap, and only the newest four
 * values live. Until the hash of the manifest is among the verifiers, the former value works.
 */
export function wantedVerifiers(apiKey: ApiKey, facts: HashFacts): readonly KeyringVerifier[] {
  const source = hashSource(apiKey)
  if (source === undefined) return facts.verifiers
  const { verifiers, isDuplicate } = facts
  const present = verifiers.filter((verifier) => isDuplicate === false || verifier.hash !== source.hash)
  const current = verifierOfHash(source, present)
  const wanted =
    current === undefined
      ? present
      : present.map((one) => (one === current ? renewed(one, source, facts, present) : former(one, source, facts)))
  return newest(wanted.filter(({ expiresMs }) => expiresMs === null || expiresMs > facts.now || !facts.isTimeKnown))
}

/** Adds a verifier with the hash of the manifest. @param id public id of the new verifier */
export function withHash(apiKey: ApiKey, facts: HashFacts, id: string): readonly KeyringVerifier[] {
  const source = hashSource(apiKey)
  if (source === undefined) return facts.verifiers
  const taken = verifierFrom(source, { id, number: nextNumber(facts.verifiers), createdMs: facts.now })
  return wantedVerifiers(apiKey, { ...facts, verifiers: [...facts.verifiers, taken] })
}

/** @returns values that newer values end before the end of the overlap */
export function endedEarly({ verifiers, now }: HashFacts, after: readonly KeyringVerifier[]): readonly KeyringVerifier[] {
  if (after.filter(isLive).length < MAX_LIVE) return []
  const left = new Set(after.map(({ id }) => id))
  return verifiers.filter((one) => isAliveAt(one, now) && !left.has(one.id))
}

/** Whether gateways accept the verifier at this moment, ms since 1970. */
export function isAliveAt(verifier: KeyringVerifier, now: number): boolean {
  return isLive(verifier) && (verifier.expiresMs === null || verifier.expiresMs > now)
}

/**
 * Restores the verifiers of a lost entry from the record that gateways use and from the manifest. Only verifiers that the status names are
 * restored, and the present verifier only with the hash of the manifest: Redis alone must not decide the value of a key.
 */
export function restoredHashes(apiKey: ApiKey, record: Pick<KeyRecord, 'verifiers'> | undefined): readonly KeyringVerifier[] {
  const { status } = apiKey
  const source = hashSource(apiKey)
  if (source === undefined || status?.keyID === undefined) return []
  const createdMs = (id: string): number => Date.parse(status.verifiers?.find((one) => one.id === id)?.createTime ?? '') || 0
  const isCurrent = isHashReported(apiKey)
  const isNamed = (id: string): boolean => status.verifiers?.some((one) => one.id === id) === true
  const named = (record?.verifiers ?? []).filter(
    ({ id, hash }) => isNamed(id) && (!isCurrent || id !== status.keyID || hash === source.hash),
  )
  const known = named.map(({ id, hash, expiresMs, proof }, index) => {
    const number = id === status.keyID ? named.length : index + 1
    return { ...verifierFrom({ ...source, hash, proof }, { id, number, createdMs: createdMs(id) }), expiresMs, prefix: '' }
  })
  if (verifierOfHash(source, known) !== undefined || !isCurrent) return known
  return [...known, verifierFrom(source, { id: status.keyID, number: known.length + 1, createdMs: createdMs(status.keyID) })]
}

/** Whether the id in the status belongs to the hash in the manifest, and not to a former value while another key has the hash. */
export function isHashReported({ status, metadata }: ApiKey): boolean {
  const accepted = findCondition(status?.conditions, 'Accepted')
  return status?.observedGeneration === metadata.generation && accepted?.status === 'True'
}

function verifierFrom(source: HashSource, made: Pick<KeyringVerifier, 'id' | 'number' | 'createdMs'>): KeyringVerifier {
  const { hash, proof } = source
  return {
    ...made,
    hash,
    expiresMs: null,
    state: 'Issued',
    prefix: shownHint(source),
    origin: 'Hash',
    ...(proof !== undefined && { proof }),
  }
}

/**
 * Removes the end of the manifest's value. A value that the manifest names again during its overlap gets a new number. Where a proof is needed,
 * the former proof stays if the manifest has none. A claim is as old as its proof: otherwise a stranger could name a hash early and prove it
 * later, when the value has leaked.
 */
function renewed(
  verifier: KeyringVerifier,
  source: HashSource,
  { mayBeUnproven, now }: HashFacts,
  all: readonly KeyringVerifier[],
): KeyringVerifier {
  const isNewest = all.every(({ number }) => number <= verifier.number)
  const proof = source.proof ?? (mayBeUnproven ? undefined : verifier.proof)
  const createdMs = proof === verifier.proof ? verifier.createdMs : now
  return { ...verifier, expiresMs: null, prefix: shownHint(source), number: isNewest ? verifier.number : nextNumber(all), proof, createdMs }
}

/** Sets the end of a former value. Only an edit can shorten an overlap: a clock that is set back cannot. */
function former(verifier: KeyringVerifier, { overlapMs }: HashSource, { isEdited, now }: HashFacts): KeyringVerifier {
  if (!isLive(verifier)) return verifier
  const endMs = now + overlapMs
  if (verifier.expiresMs === null) return { ...verifier, expiresMs: endMs }
  return isEdited && endMs < verifier.expiresMs ? { ...verifier, expiresMs: endMs } : verifier
}

function newest(verifiers: readonly KeyringVerifier[]): readonly KeyringVerifier[] {
  const live = verifiers.filter(isLive)
  if (live.length <= MAX_LIVE) return verifiers
  const kept = new Set(live.toSorted((a, b) => b.number - a.number).slice(0, MAX_LIVE))
  return verifiers.filter((verifier) => kept.has(verifier) || !isLive(verifier))
}

function nextNumber(verifiers: readonly KeyringVerifier[]): number {
  return Math.max(0, ...verifiers.map(({ number }) => number)) + 1
}
