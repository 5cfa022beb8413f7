/** Reads the world around one ApiKey into one Observed. The only reader; decides nothing. */
import { namespaceOf, uidOf } from '../kube/port.ts'
import type { KeyringLine } from '../../gateway/shared/keyring-line.ts'
import type { ApiKey } from '../api/apikey.ts'
import { secrets } from '../kube/resources.ts'
import type { ApiKeyDeps } from './deps.ts'
import type { Observed, ObservedConfirmation } from './observed.ts'
import { currentVerifier, recordText } from './policy.ts'
import { type ObservedSecret, observeSecret, secretName } from './user-secret.ts'

/** What is known without asking anybody. @param apiKey as cached */
export function gather(apiKey: ApiKey, deps: ApiKeyDeps): Observed {
  return {
    apiKey,
    secret: { state: 'Unknown' },
    confirmation: undefined,
    revocationWaitMs: deps.revocationWaitMs,
    ...gatherOwn(apiKey, deps),
  }
}

/** @throws KubeError when the Secret cannot be read; nothing that depends on it may be decided then */
export async function gatherSecret(apiKey: ApiKey, deps: ApiKeyDeps): Promise<ObservedSecret> {
  const secret = await deps.kube.get(secrets, { namespace: namespaceOf(apiKey), name: secretName(apiKey) })
  return observeSecret(apiKey, secret, deps.publicURL)
}

/** The part that lies in this process' memory. */
export function gatherOwn(
  apiKey: ApiKey,
  deps: ApiKeyDeps,
): Pick<Observed, 'line' | 'holdsCredential' | 'projectedRev' | 'storeAvailable' | 'now'> {
  const uid = uidOf(apiKey)
  const now = deps.clock.now()
  const line = deps.keyring.get(uid)
  const verifier = currentVerifier(line)
  return {
    line,
    holdsCredential: verifier !== undefined && deps.vault.get(verifier.id, now) !== undefined,
    projectedRev: projectedRevision(line, uid, deps),
    storeAvailable: deps.projection.available,
    now,
  }
}

function projectedRevision(line: KeyringLine | undefined, uid: string, deps: ApiKeyDeps): number | undefined {
  return deps.projection.revisionOf('key', uid, line && recordText(line))
}

/** How far the present record has come, after waiting for at most `waitedMs`. */
export async function gatherConfirmation(
  observed: Observed,
  timeoutMs: number,
  deps: ApiKeyDeps,
  changed: AbortSignal,
): Promise<ObservedConfirmation> {
  const rev = observed.projectedRev ?? 0
  const confirmation = await deps.acknowledgements.wait(rev, uidOf(observed.apiKey), timeoutMs, changed)
  return { ...confirmation, rev, waitedMs: (observed.confirmation?.waitedMs ?? 0) + timeoutMs }
}
