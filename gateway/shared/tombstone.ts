import type { KeyringEntry, KeyringVerifier } from './keyring-entry.ts'

/** A tombstone stays this long, ms: longer than any mounted file or stale replica lags. */
export const KEEP_TOMBSTONES_MS = 24 * 3600 * 1000

/**
 * The entry of a deleted key: every generation is ended, and the policy is dropped, so that it always fits where the entry was.
 * @param now ms since 1970
 */
export function tombstoneOf(entry: KeyringEntry, now: number): KeyringEntry {
  const { version, revision, uid, namespace, name, expiresMs, generation } = entry
  const verifiers = entry.verifiers.map(ended)
  return { version, revision, uid, namespace, name, state: 'Revoked', expiresMs, generation, verifiers, deletedMs: now }
}

/** A generation that never reached anybody is voided, not revoked. */
function ended(verifier: KeyringVerifier): KeyringVerifier {
  if (verifier.state === 'Voided' || verifier.state === 'Revoked') return verifier
  return { ...verifier, state: verifier.state === 'Minted' ? 'Voided' : 'Revoked' }
}
