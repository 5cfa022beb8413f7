/** Facts about an observed ApiKey for both the next step and the status. Pure. */
import type { KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { findCondition } from '#api/condition-list.ts'
import { isHashKey } from './hash-source.ts'
import type { Observed } from './observed.ts'

/** @returns whether the keyring has lost an issued key, for which no new value may be minted silently */
export function isKeyLost(observed: Observed): boolean {
  const { entry, isUnreadable, mayBeInRedis, apiKey, secret } = observed
  if (entry !== undefined || isUnreadable || mayBeInRedis || apiKey.status?.keyID === undefined || isHashKey(apiKey)) return false
  return secret.state !== 'Unknown' && restorable(observed) === undefined
}

/** Whether the status says that every gateway has this generation of the manifest and of the key material. */
export function wasProgrammed({ apiKey, verifier }: Observed): boolean {
  const { status, metadata } = apiKey
  const programmed = findCondition(status?.conditions, 'Programmed')
  return programmed?.status === 'True' && programmed.observedGeneration === metadata.generation && status?.keyID === verifier?.id
}

/**
 * The verifier of a lost entry, restored from the user's Secret. The value must have a valid checksum and the id that the status names.
 * Without a status nothing is restored: a user who may write Secrets could otherwise choose the value of a key.
 */
export function restorable({ apiKey, secret, now }: Observed): KeyringVerifier | undefined {
  if (secret.state !== 'Ours' || secret.hash === undefined || secret.keyID !== secret.valueID) return undefined
  if (apiKey.status?.keyID !== secret.keyID) return undefined
  const createdMs = Date.parse(apiKey.status.verifiers?.[0]?.createTime ?? '') || now
  return {
    id: secret.keyID,
    hash: secret.hash,
    expiresMs: null,
    number: Math.max(1, secret.generation),
    state: 'Issued',
    createdMs,
    prefix: secret.prefix,
  }
}

/**
 * Whether the name of the Secret is taken: by another object, or by a value that a user put into this ApiKey's own Secret. A value that the
 * operator wrote late does not count: it is deleted.
 */
export function isNameTaken(observed: Observed): boolean {
  const { secret, verifier, apiKey } = observed
  if (isHashKey(apiKey)) return false
  if (secret.state === 'Foreign' || secret.state === 'LeftOver') return true
  if (secret.state !== 'Ours' || verifier?.state === 'Issued' || isKeyLost(observed)) return false
  return !(verifier && isDelivered(observed, verifier)) && !isLateWrite(observed)
}

export function isDelivered({ secret }: Observed, verifier: KeyringVerifier): boolean {
  return secret.state === 'Ours' && secret.hash === verifier.hash
}

/**
 * Whether the Secret holds a generated value that was voided or never became durable. A call with a long delay, or a deposed leader, wrote it
 * late. No edit of a user has a valid checksum and the right id.
 */
export function isLateWrite({ secret, entry }: Observed): boolean {
  if (secret.state !== 'Ours' || secret.hash === undefined || !entry) return false
  const { hash, keyID, valueID } = secret
  const owner = entry.verifiers.find((verifier) => verifier.hash === hash || verifier.id === valueID)
  return owner ? owner.hash === hash && (owner.state === 'Voided' || owner.state === 'Revoked') : valueID === keyID
}
