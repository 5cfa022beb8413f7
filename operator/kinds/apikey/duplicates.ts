/** Detects two keys with one value. Gateways could not decide whose limits apply, so only one of the keys gets the value. */
import type { KeyHash } from '#contract/values/credential.ts'
import { isLive, type KeyringEntry, type KeyringVerifier } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import { createdMs, uidOf } from '#kube/port.ts'
import type { ApiKeyDeps } from './deps.ts'
import { HASH_INDEX, hashSource, verifierOfHash } from './hash-source.ts'

type DuplicateDeps = Pick<ApiKeyDeps, 'keyring' | 'apiKeys'>

/**
 * Decides whether another key has the value. The present holder keeps it against every later claim: otherwise a user who learns a hash could
 * take over the traffic of a working key. Without a holder, the oldest ApiKey gets the value.
 * @param entry the newest entry of the ApiKey
 */
export function isDuplicate(apiKey: ApiKey, entry: KeyringEntry | undefined, { keyring, apiKeys }: DuplicateDeps): boolean {
  const source = hashSource(apiKey)
  if (source === undefined) return false
  const uid = uidOf(apiKey)
  const own = verifierOfHash(source, entry?.verifiers)
  const others = [...keyring.holdersOf(source.hash)].filter((other) => other.uid !== uid)
  if (own !== undefined) return others.some((other) => isEarlier(other, uid, { own, hash: source.hash }))
  if (others.length > 0) return true
  return [...apiKeys.byIndex(HASH_INDEX, source.hash)].some((rival) => isRival(rival, apiKey))
}

/** Whether the other of two entries with one value had the value first, and so keeps it. Only a restore makes two such entries. */
function isEarlier(other: KeyringEntry, uid: string, { own, hash }: { readonly own: KeyringVerifier; readonly hash: KeyHash }): boolean {
  const theirs = other.verifiers.find((verifier) => verifier.hash === hash && isLive(verifier))
  if (theirs === undefined) return false
  return theirs.createdMs === own.createdMs ? other.uid < uid : theirs.createdMs < own.createdMs
}

function isRival(rival: ApiKey, apiKey: ApiKey): boolean {
  if (uidOf(rival) === uidOf(apiKey) || rival.metadata.deletionTimestamp !== undefined) return false
  const [theirs, own] = [createdMs(rival), createdMs(apiKey)]
  return theirs === own ? uidOf(rival) < uidOf(apiKey) : theirs < own
}
