/** Keys with `source.type: Hash`, for tests of pure code: their manifests and verifiers. */
import { createHash } from 'node:crypto'
import { hashCredential, randomKeyID } from '#contract/values/credential.ts'
import type { KeyringVerifier } from '#contract/records/keyring-entry.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import type { Observed } from '../../operator/kinds/apikey/observed.ts'
import { entryFor, fresh, heldKey, issued, NOW, withEntry } from './observed-key.ts'

export function sha256(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}

/** The part of a spec that names this value, with its last 4 characters as the hint. */
export function hashSpec(value: string, overlapSeconds?: number, hint: string = `…${value.slice(-4)}`): Partial<ApiKeySpec> {
  const source = { type: 'Hash', hash: { sha256: sha256(value), hint } } as const
  return { source, ...(overlapSeconds === undefined ? {} : { rotation: { overlapSeconds } }) }
}

/** One value of a key, taken from its manifest. */
export function hashVerifier(value: string, number = 1, change: Partial<KeyringVerifier> = {}): KeyringVerifier {
  const made = {
    id: randomKeyID(),
    number,
    state: 'Issued',
    createdMs: NOW - 60_000,
    prefix: `…${value.slice(-4)}`,
    origin: 'Hash',
  } as const
  return { ...made, hash: hashCredential(value), expiresMs: null, ...change }
}

/** A key with these values, acknowledged by all pods; its manifest names the last one. */
export function taken(values: readonly KeyringVerifier[], spec: Partial<ApiKeySpec>): Observed {
  const key = heldKey(spec)
  return { ...withEntry(issued(key), entryFor(key, values)), secret: { state: 'Unknown' } }
}

/** A key whose manifest names a hash that is not in its keyring entry yet. */
export function notTaken(spec: Partial<ApiKeySpec>, change: Partial<Observed> = {}): Observed {
  return fresh(change, heldKey(spec))
}
