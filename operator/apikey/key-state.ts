/** Facts about an observed ApiKey that both its next step and its status depend on. Pure. */
import type { KeyringVerifier } from '../../gateway/shared/keyring-entry.ts'
import { findCondition } from '../api/condition-list.ts'
import { hasGenerated, isHashKey } from './hash-source.ts'
import type { Observed } from './observed.ts'

/** @returns whether the keyring lost a key that was issued: nothing is minted silently then */
export function isKeyLost(observed: Observed): boolean {
  const { entry, isUnreadable, apiKey, secret } = observed
  if (entry !== undefined || isUnreadable || apiKey.status?.keyID === undefined || isHashKey(apiKey)) return false
  return secret.state !== 'Unknown' && restorable(observed) === undefined
}

/** Whether there may be a Secret of the operator for this key. With source.type Hash only an older version has written one. */
export function mayHaveSecret({ apiKey, entry }: Pick<Observed, 'apiKey' | 'entry'>): boolean {
  return !isHashKey(apiKey) || hasGenerated(entry)
}

/** Every pod that serves has the present record, or none serves. */
export function isSettledOnGateways({ projected, confirmation }: Observed): boolean {
  return projected !== undefined && (confirmation?.state === 'Acknowledged' || confirmation?.state === 'NoGateways')
}

/** The status already says that every gateway has this generation of the manifest and of the key material. */
export function wasProgrammed({ apiKey, verifier }: Observed): boolean {
  const { status, metadata } = apiKey
  const programmed = findCondition(status?.conditions, 'Programmed')
  return programmed?.status === 'True' && programmed.observedGeneration === metadata.generation && status?.keyID === verifier?.id
}

/**
 * A lost entry can be restored from the user's Secret: the value must carry a valid checksum and the id that the status names. Without
 * the status nothing is restored: a user who may write Secrets could otherwise choose the value of a key.
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
 * The name of the Secret is not free: another object has it, or this ApiKey's own Secret holds a value that a user put there. A value that
 * the operator wrote late makes room.
 */
export function isNameTaken(observed: Observed): boolean {
  const { secret, verifier } = observed
  if (!mayHaveSecret(observed)) return false
  if (secret.state === 'Foreign' || secret.state === 'LeftOver') return true
  if (secret.state !== 'Ours' || verifier?.state === 'Issued' || isKeyLost(observed)) return false
  return !(verifier && isDelivered(observed, verifier)) && !isLateWrite(observed)
}

/** The Secret holds the value of this generation. */
export function isDelivered({ secret }: Observed, verifier: KeyringVerifier): boolean {
  return secret.state === 'Ours' && secret.hash === verifier.hash
}

/**
 * The Secret holds a value that the operator made and that was voided, or never became durable: a call that was long under way, or a
 * deposed leader, wrote it late. No user's edit has a valid checksum and the right id.
 */
export function isLateWrite({ secret, entry }: Observed): boolean {
  if (secret.state !== 'Ours' || secret.hash === undefined || !entry) return false
  const { hash, keyID, valueID } = secret
  const owner = entry.verifiers.find((verifier) => verifier.hash === hash || verifier.id === valueID)
  return owner ? owner.hash === hash && (owner.state === 'Voided' || owner.state === 'Revoked') : valueID === keyID
}
