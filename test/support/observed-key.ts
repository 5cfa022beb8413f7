/** What `decide` and `describe` see of one ApiKey, for tests: a key that is issued and programmed, and changes to that. */
import { credentialPrefix, hashCredential, mintCredential } from '../../gateway/shared/credential.ts'
import type { KeyringVerifier } from '../../gateway/shared/keyring-line.ts'
import type { ApiKey } from '../../operator/api/apikey.ts'
import { FINALIZER } from '../../operator/apikey/decide.ts'
import { describe } from '../../operator/apikey/describe.ts'
import type { Observed, ObservedConfirmation } from '../../operator/apikey/observed.ts'
import { lineOf } from '../../operator/apikey/policy.ts'
import type { ObservedSecret } from '../../operator/apikey/user-secret.ts'
import { apiKey } from './objects.ts'

/** Time of all of them. */
export const NOW = Date.UTC(2026, 0, 2)

/** One generation of a key. */
export function verifierOf(n: number, state: KeyringVerifier['state'] = 'Issued'): KeyringVerifier {
  const { credential, id } = mintCredential()
  return { id, h: hashCredential(credential), exp: null, n, state, created: NOW - 60_000, prefix: credentialPrefix(credential) }
}

/** The Secret that holds this one. */
export function secretOf({ id, h, n, prefix }: KeyringVerifier): ObservedSecret {
  return { state: 'Ours', uid: 'secret-1', hash: h, keyID: id, valueID: id, generation: n, prefix, current: true }
}

/** All of `total` pods have it. */
export function confirmed(rev = 7, total = 2): ObservedConfirmation {
  return { rev, ready: total, total, missing: [], known: true, waitedMs: 0 }
}

/** Two of three pods have it, after having waited. */
export function unconfirmed(waitedMs: number, rev = 7): ObservedConfirmation {
  return { rev, ready: 2, total: 3, missing: ['gateway-2'], known: true, waitedMs }
}

/** An ApiKey that our finalizer is on. */
export function heldKey(spec: Partial<ApiKey['spec']> = {}, metadata: Partial<ApiKey['metadata']> = {}): ApiKey {
  const own = { uid: 'uid-1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z', finalizers: [FINALIZER] }
  return apiKey('bot', spec, { ...own, ...metadata })
}

/** An issued key, confirmed by all pods; its status is not written yet. */
export function issued(key: ApiKey = heldKey(), verifier = verifierOf(1)): Observed {
  return {
    apiKey: key,
    line: lineOf(key, [verifier], 7),
    secret: secretOf(verifier),
    holdsCredential: false,
    projectedRev: 7,
    confirmation: confirmed(),
    storeAvailable: true,
    now: NOW,
    revocationWaitMs: 30_000,
  }
}

/** The same with the status that follows from it. */
export function withStatus(observed: Observed): Observed {
  return { ...observed, apiKey: { ...observed.apiKey, status: describe(observed) } }
}
