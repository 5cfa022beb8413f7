/** Carries out one step. Every step may be repeated after a crash; each returns what it changed in the Observed. */
import { credentialPrefix, hashCredential, mintCredential } from '../../gateway/shared/credential.ts'
import type { KeyringLine, KeyringVerifier } from '../../gateway/shared/keyring-line.ts'
import { isKubeError, KubeError, namespaceOf, type ObjectRef, type PatchOperation, refOf, uidOf } from '../kube/port.ts'
import { apiKeys, secrets } from '../kube/resources.ts'
import { deletedMs, FINALIZER, type Step } from './decide.ts'
import type { ApiKeyDeps } from './deps.ts'
import { gatherConfirmation, gatherOwn, gatherSecret } from './gather.ts'
import type { Observed } from './observed.ts'
import { lineOf, recordText, withVerifier } from './policy.ts'
import { observeSecret, refreshedSecret, secretName, userSecret } from './user-secret.ts'

/** What a step changed. */
export type Change = Partial<Observed>

/**
 * @param changed aborts when the object has changed: a wait for gateways ends then
 * @throws KubeError or a store error; the key is then tried again from the top
 */
export async function apply(step: Step, observed: Observed, deps: ApiKeyDeps, changed: AbortSignal): Promise<Change> {
  deps.assertLeading()
  if (step.do === 'confirm') {
    return { confirmation: await gatherConfirmation(observed, step.timeoutMs, deps, changed), now: deps.clock.now() }
  }
  return isAboutSecret(step) ? applyToSecret(step, observed, deps) : applyToKey(step, observed, deps)
}

type SecretStep = Extract<Step, { do: 'look-at-secret' | 'write-secret' | 'refresh-secret' | 'delete-secret' }>
type KeyStep = Exclude<Step, SecretStep | { do: 'confirm' }>

function isAboutSecret(step: Step): step is SecretStep {
  return step.do.endsWith('-secret')
}

function applyToKey(step: KeyStep, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  switch (step.do) {
    case 'add-finalizer':
      return addFinalizer(observed, deps)
    case 'mint':
      return mint(step.n, observed, deps)
    case 'mark-issued':
      return markIssued(step.line, observed, deps)
    case 'settle':
      return settle(step, observed, deps)
    case 'project':
      return project(observed, deps)
    case 'remove-finalizer':
      return removeFinalizer(step, observed, deps)
  }
}

function applyToSecret(step: SecretStep, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  switch (step.do) {
    case 'look-at-secret':
      return lookAtSecret(observed, deps)
    case 'write-secret':
      return writeSecret(step.verifier, observed, deps)
    case 'refresh-secret':
      return refreshSecret(observed, deps)
    case 'delete-secret':
      return deleteSecret(step.uid, observed, deps)
  }
}

async function lookAtSecret(observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  return { secret: await gatherSecret(observed.apiKey, deps) }
}

async function deleteSecret(uid: string, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  await deps.kube.remove(secrets, secretRef(observed), { uid })
  return { secret: { state: 'Absent' } }
}

async function markIssued(line: KeyringLine, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  deps.keyring.commitLater({ ...line, rev: deps.projection.rev })
  return gatherOwn(observed.apiKey, deps)
}

/** The API server answers 422 when a `test` of a patch fails: the cached object was old. That is a conflict, tried again at once. */
function asConflict(error: unknown): never {
  if (!isKubeError(error, 'Invalid')) throw error
  throw new KubeError('Conflict', error.status, error.message, { cause: error })
}

async function addFinalizer({ apiKey }: Observed, deps: ApiKeyDeps): Promise<Change> {
  const present = apiKey.metadata.finalizers
  const operations: PatchOperation[] = [
    { op: 'test', path: '/metadata/resourceVersion', value: apiKey.metadata.resourceVersion },
    present
      ? { op: 'add', path: '/metadata/finalizers/-', value: FINALIZER }
      : { op: 'add', path: '/metadata/finalizers', value: [FINALIZER] },
  ]
  return { apiKey: await deps.kube.patch(apiKeys, refOf(apiKey), operations).catch(asConflict) }
}

/** The commit of the verifier is the moment from which the key exists. The Credential itself never leaves this process before. */
async function mint(n: number, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  const { credential, id } = mintCredential()
  const now = deps.clock.now()
  const verifier: KeyringVerifier = {
    id,
    h: hashCredential(credential),
    exp: null,
    n,
    state: 'Minted',
    created: now,
    prefix: credentialPrefix(credential),
  }
  deps.vault.hold(id, credential, now)
  await deps.keyring.commit(lineOf(observed.apiKey, withVerifier(observed.line?.ver ?? [], verifier), deps.projection.rev))
  return { ...gatherOwn(observed.apiKey, deps), confirmation: undefined }
}

/** Durable and live at once: a suspension must not wait for etcd, nor a commit for Redis. Not durable is an error; not live is retried. */
async function settle({ line, restored }: Step & { do: 'settle' }, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  const stamped = { ...line, rev: deps.projection.rev }
  const [committed, projected] = await Promise.allSettled([deps.keyring.commit(stamped), projectLine(stamped, deps)])
  if (committed.status === 'rejected') throw committed.reason
  if (restored)
    deps.recordEvent(observed.apiKey, 'KeyringRestored', 'The keyring had lost the key; it was restored from the Secret. The key works on.')
  const same = projected.status === 'fulfilled' && projected.value === observed.projectedRev
  return { ...gatherOwn(observed.apiKey, deps), ...(same ? {} : { confirmation: undefined }) }
}

async function project(observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  const uid = uidOf(observed.apiKey)
  try {
    if (observed.line) await projectLine(observed.line, deps)
    else await deps.projection.delete('key', uid)
  } catch {
    return { ...gatherOwn(observed.apiKey, deps), storeAvailable: false } // the projection itself reports the store; the status says StoreUnreachable
  }
  return { ...gatherOwn(observed.apiKey, deps), confirmation: undefined }
}

async function projectLine(line: KeyringLine, deps: ApiKeyDeps): Promise<number> {
  const text = recordText(line)
  const present = deps.projection.revisionOf('key', line.uid, text)
  if (present !== undefined) return present
  return text === undefined ? deps.projection.delete('key', line.uid) : deps.projection.put('key', line.uid, text)
}

async function writeSecret(verifier: KeyringVerifier, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  const { apiKey } = observed
  const credential = deps.vault.get(verifier.id, deps.clock.now())
  if (!credential) return gatherOwn(apiKey, deps) // held too long: the next step voids the verifier
  try {
    const written = await deps.kube.create(secrets, userSecret(apiKey, credential, deps.publicURL, verifier))
    deps.vault.drop(verifier.id)
    return { ...gatherOwn(apiKey, deps), secret: observeSecret(apiKey, written, deps.publicURL) }
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error
    const found = await deps.kube.get(secrets, secretRef(observed)) // our own write with a lost answer, or somebody was quicker
    return { secret: observeSecret(apiKey, found, deps.publicURL) }
  }
}

async function refreshSecret(observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  const { apiKey } = observed
  const secret = await deps.kube.get(secrets, secretRef(observed))
  const wanted = secret && refreshedSecret(apiKey, secret, deps.publicURL)
  if (!secret || !wanted) return { secret: observeSecret(apiKey, secret, deps.publicURL) }
  const written = await deps.kube.patch(secrets, secretRef(observed), [
    { op: 'test', path: '/metadata/resourceVersion', value: secret.metadata.resourceVersion },
    { op: 'add', path: '/data', value: wanted.data },
    { op: 'add', path: '/metadata/labels', value: wanted.metadata.labels },
    { op: 'add', path: '/metadata/annotations', value: wanted.metadata.annotations },
  ])
  return { secret: observeSecret(apiKey, written, deps.publicURL) }
}

async function removeFinalizer(step: Step & { do: 'remove-finalizer' }, observed: Observed, deps: ApiKeyDeps): Promise<Change> {
  const { apiKey } = observed
  const index = apiKey.metadata.finalizers?.indexOf(FINALIZER) ?? -1
  if (step.hadKey) announceRevocation(step.confirmed, observed, deps)
  const after = await deps.kube
    .patch(apiKeys, refOf(apiKey), [
      { op: 'test', path: '/metadata/resourceVersion', value: apiKey.metadata.resourceVersion },
      { op: 'remove', path: `/metadata/finalizers/${index}` },
    ])
    .catch((error: unknown) => {
      if (isKubeError(error, 'NotFound')) return { ...apiKey, metadata: { ...apiKey.metadata, finalizers: [] } } // gone is gone
      return asConflict(error)
    })
  deps.projection.forget('key', uidOf(apiKey))
  if (step.confirmed) deps.onRevoked((deps.clock.now() - deletedMs(observed)) / 1000)
  return { apiKey: after }
}

function announceRevocation(confirmed: boolean, { apiKey, confirmation, projectedRev }: Observed, deps: ApiKeyDeps): void {
  if (confirmed) {
    const count = `${confirmation?.ready ?? 0} of ${confirmation?.total ?? 0}`
    deps.recordEvent(apiKey, 'Revoked', `The key is revoked; ${count} gateway pods have acknowledged it.`)
    return
  }
  const why =
    projectedRev !== undefined && confirmation?.known === true
      ? `these gateway pods have not acknowledged it: ${confirmation.missing.join(', ')}`
      : 'Redis does not answer, so no gateway pod could acknowledge it'
  deps.recordEvent(apiKey, 'RevocationUnconfirmed', `The key is revoked, but ${why}. They learn it when they reach Redis again.`)
}

function secretRef({ apiKey }: Observed): ObjectRef {
  return { namespace: namespaceOf(apiKey), name: secretName(apiKey) }
}
