import type { KeyringEntry, KeyringVerifier } from './keyring-entry.ts'

/** Life of a tombstone, ms: longer than the delay of any mounted file or stale replica. */
export const KEEP_TOMBSTONES_MS = 24 * 3600 * 1000

/**
 * Makes the entry of a deleted key: every generation is ended and the policy is dropped, so that it always fits in the place of the entry.
 * @param now ms since 1970
 */
export function tombstoneOf(entry: KeyringEntry, now: number): KeyringEntry {
  const { version, revision, uid, namespace, name, expiresMs, generation } = entry
  const verifiers = entry.verifiers.map(ended)
  return { version, revision, uid, namespace, name, state: 'Revoked', expiresMs, generation, verifiers, deletedMs: now }
}

/** A generation that was never delivered is voided, not revoked. */
function ended(verifier: KeyringVerifier): KeyringVerifier {
  if (verifier.state === 'Voided' || verifier.state === 'Revoked') return verifier
  return { ...verifier, state: verifier.state === 'Minted' ? 'Voided' : 'Revoked' }
}
