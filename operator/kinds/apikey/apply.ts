/** Applies one step: at most one API call. Every step may be repeated after a crash. The next `observe` shows the effects of the step. */
import { credentialPrefix, hashCredential, mintCredential, randomKeyID } from '#contract/values/credential.ts'
import type { KeyringEntry, KeyringVerifier } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { apiKeys } from '#api/resources.ts'
import { identityOf, isKubeError, KubeError, namespaceOf, type ObjectRef, type PatchOperation, refOf, uidOf } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { addFinalizer, removeFinalizer } from '../finalizer.ts'
import type { ApiKeyDeps } from './kind.ts'
import { eventsOf } from './events.ts'
import { endedEarly, hashFacts, isHashKey, withHash } from './hash-source.ts'
import { entryOf, recordText, withVerifier } from './keyring-entry.ts'
import { wasProgrammed } from './key-state.ts'
import type { Observed } from './observed.ts'
import { recoverKept } from './start-records.ts'
import { statusOf } from './status.ts'
import { type Step, wasRefused } from './step.ts'
import { projectStandIn } from './unread-keys.ts'
import { observeSecret, refreshedSecret, secretName, trialSecret, userSecret } from './user-secret.ts'

type Of<Do extends Step['do']> = Extract<Step, { do: Do }>
type Applied = Promise<void> | void
type Applications = { readonly [Do in Step['do']]: (step: Of<Do>, observed: Observed, deps: ApiKeyDeps) => Applied }

const APPLICATIONS: Applications = {
  'add-finalizer': hold,
  'read-live': readLive,
  'read-secret': readSecret,
  'try-secret': trySecret,
  mint,
  recover: (_step, { apiKey }, deps) => recoverKept(apiKey, deps),
  'record-values': recordValues,
  'take-hash': takeHash,
  'mark-issued': markIssued,
  commit,
  project,
  'write-secret': writeSecret,
  'refresh-secret': refreshSecret,
  'delete-secret': deleteSecret,
  'delete-key': deleteKey,
  'write-status': writeStatus,
  'remove-finalizer': release,
}

/** @throws KubeError; the reconciler then tries the step again after a pause */
export async function apply<Do extends Step['do']>(step: Of<Do>, observed: Observed, deps: ApiKeyDeps): Promise<void> {
  await APPLICATIONS[step.do](step, observed, deps)
}

async function hold(_step: Step, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  deps.ownWrites.remember(await addFinalizer(apiKeyKind, apiKey, deps.kube))
}

async function readLive(_step: Step, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  const live = await deps.kube.get(apiKeys, refOf(apiKey))
  if (live !== undefined && live.metadata.uid === apiKey.metadata.uid) {
    deps.memory.confirmedLive(uidOf(live), live.metadata.resourceVersion)
    return deps.ownWrites.remember(live)
  }
  throw new KubeError('Conflict', 0, `ApiKey ${apiKey.metadata.name} was deleted, and the cache does not show the deletion yet`)
}

async function readSecret(_step: Step, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  await rememberAfter(apiKey, deps, () => deps.kube.get(secrets, secretRef(apiKey)))
}

async function trySecret(_step: Step, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  try {
    await deps.kube.create(secrets, trialSecret(apiKey, deps.settings.publicURL), { dryRun: true })
    deps.memory.trialSucceeded(uidOf(apiKey))
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error
    deps.memory.forgetSecret(uidOf(apiKey)) // another client has taken the name since the last read
  }
}

/** Mints a value. The key exists from the commit of the verifier on. The Credential leaves this process only for its Secret. */
function mint({ number }: Of<'mint'>, { apiKey, account, entry, version, now }: Observed, deps: ApiKeyDeps): void {
  const { credential, id } = mintCredential()
  const verifier: KeyringVerifier = {
    id,
    hash: hashCredential(credential),
    expiresMs: null,
    number,
    state: 'Minted',
    createdMs: now,
    prefix: credentialPrefix(credential),
  }
  deps.vault.hold(id, credential)
  const verifiers = withVerifier(entry?.verifiers ?? [], verifier)
  deps.keyring.commit(entryOf(apiKey, { account, verifiers, revision: deps.projection.revision, version, former: entry }), 'create')
}

async function recordValues({ hashes, isRevoked, level }: Of<'record-values'>, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  const namespace = namespaceOf(apiKey)
  await Promise.all(hashes.map((hash) => deps.usedValues.record({ namespace, hash, isRevoked }, level)))
}

/** Sends the hash to the keyring and to the gateways at once, like any edit: the manifest is already durable. */
function takeHash({ id, level }: Of<'take-hash'>, observed: Observed, deps: ApiKeyDeps): void {
  const { apiKey, account, entry, version } = observed
  const facts = hashFacts(observed)
  const verifiers = withHash(apiKey, facts, id ?? randomKeyID())
  const taken = entryOf(apiKey, { account, verifiers, revision: entry?.revision ?? 0, version, former: entry })
  commit({ do: 'commit', level, entry: taken, ...(id === undefined ? {} : { isRestored: true }) }, observed, deps)
  for (const ended of endedEarly(facts, verifiers))
    deps.recordEvent(
      apiKey,
      'ValueEndedEarly',
      `The value with id ${ended.id} stopped before its overlap was over: four newer values work.`,
    )
}

function markIssued({ entry }: Of<'mark-issued'>, _observed: Observed, deps: ApiKeyDeps): void {
  deps.keyring.commitLater(stamped(entry, deps))
}

/** Sends the entry to the keyring and to the gateways at once: a suspension waits neither for etcd nor for Redis. */
function commit(step: Of<'commit'>, observed: Observed, deps: ApiKeyDeps): void {
  const { apiKey } = observed
  const uid = uidOf(apiKey)
  const entry = stamped(step.entry, deps)
  const isHeldBack = isDoubtful({ ...step, entry }, observed, deps)
  deps.keyring.commit(entry, step.level, { isRestored: step.isRestored === true })
  if (!isHeldBack) deps.projection.want('key', uid, recordText(entry, deps.version()), step.level)
  if (step.isUncounted !== true) deps.memory.revised(uid)
  if (step.isRestored === true)
    deps.recordEvent(
      apiKey,
      'KeyringRestored',
      `The keyring had lost the key; it was restored from the ${isHashKey(apiKey) ? 'manifest' : 'Secret'}. The key works on.`,
    )
}

/** Whether the keyring may refuse an edit that restricts nothing. Gateways get it when it is durable: else each try would be two revisions. */
function isDoubtful({ entry, level, isRestored }: Of<'commit'>, observed: Observed, { keyring }: ApiKeyDeps): boolean {
  if (level === 'urgent' || isRestored === true) return false
  return wasRefused(observed) || keyring.refuses(entry, level)
}

function project({ level }: Of<'project'>, { apiKey, entry, version, isUnreadable }: Observed, deps: ApiKeyDeps): void {
  if (isUnreadable && apiKey.spec.state === 'Active' && apiKey.metadata.deletionTimestamp === undefined) return projectStandIn(deps)
  deps.projection.want('key', uidOf(apiKey), entry && recordText(entry, version), level)
}

function stamped(entry: KeyringEntry, { projection, subjects }: ApiKeyDeps): KeyringEntry {
  const deletedMs = entry.deletedMs === null ? null : (subjects.ledger?.storeTime() ?? entry.deletedMs)
  return { ...entry, revision: projection.revision, deletedMs }
}

async function writeSecret({ verifier }: Of<'write-secret'>, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  const credential = deps.vault.get(verifier.id)
  if (credential === undefined) return deps.memory.forgetSecret(uidOf(apiKey)) // the vault has dropped the value: the next step voids the verifier
  try {
    const written = await deps.kube.create(secrets, userSecret(apiKey, credential, deps.settings.publicURL, verifier))
    deps.vault.drop(verifier.id)
    rememberSecret(apiKey, written, deps)
  } catch (error) {
    if (!isKubeError(error, 'AlreadyExists')) throw error
    rememberSecret(apiKey, await deps.kube.get(secrets, secretRef(apiKey)), deps) // an own write whose answer was lost, or the name is taken
  }
}

async function refreshSecret(_step: Step, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  const secret = await deps.kube.get(secrets, secretRef(apiKey))
  const wanted = secret && refreshedSecret(apiKey, secret, deps.settings.publicURL)
  if (!secret || !wanted) return rememberSecret(apiKey, secret, deps)
  const operations: PatchOperation[] = [
    { op: 'test', path: '/metadata/resourceVersion', value: secret.metadata.resourceVersion },
    { op: 'add', path: '/data', value: wanted.data },
    { op: 'add', path: '/metadata/labels', value: wanted.metadata.labels },
    { op: 'add', path: '/metadata/annotations', value: wanted.metadata.annotations },
  ]
  const written = await deps.kube.patch(secrets, secretRef(apiKey), operations)
  rememberSecret(apiKey, written, deps)
}

async function deleteSecret({ uid }: Of<'delete-secret'>, { apiKey }: Observed, deps: ApiKeyDeps): Promise<void> {
  await rememberAfter(apiKey, deps, async () => {
    await deps.kube.remove(secrets, secretRef(apiKey), { uid })
    return undefined
  })
}

async function deleteKey({ ref, uid }: Of<'delete-key'>, _observed: Observed, deps: ApiKeyDeps): Promise<void> {
  await deps.kube.remove(apiKeys, ref, { uid })
}

async function writeStatus(_step: Step, observed: Observed, deps: ApiKeyDeps): Promise<void> {
  const { apiKey } = observed
  const status = statusOf(observed)
  const written: ApiKey = await deps.kube.applyStatus(apiKeys, { ...apiKey, metadata: identityOf(apiKey), status })
  deps.ownWrites.remember(written)
  const isProven = status.conditions?.some(({ type, reason }) => type === 'Programmed' && reason === 'Programmed') === true
  if (apiKey.spec.state === 'Revoked' && isProven && !wasProgrammed(observed))
    deps.metrics?.revoked((observed.projected?.forMs ?? 0) / 1000)
  for (const { reason, note } of eventsOf(observed, status)) deps.recordEvent(apiKey, reason, note)
}

async function release(step: Of<'remove-finalizer'>, observed: Observed, deps: ApiKeyDeps): Promise<void> {
  const { apiKey } = observed
  if (step.hadKey) reportRevocation(step.isConfirmed, observed, deps)
  await removeFinalizer(apiKeyKind, apiKey, deps.kube)
  // the answer to this patch has the resourceVersion of the request, so only memory knows that the cached object is outdated
  if (deps.apiKeys.get(refOf(apiKey))?.metadata.uid === uidOf(apiKey)) deps.memory.released(uidOf(apiKey))
  deps.projection.forget('key', uidOf(apiKey))
  if (step.isConfirmed && step.hadKey) deps.metrics?.revoked((observed.projected?.forMs ?? 0) / 1000)
}

function reportRevocation(isConfirmed: boolean, { apiKey, confirmation }: Observed, deps: ApiKeyDeps): void {
  if (isConfirmed) {
    const count = `${confirmation?.ready ?? 0} of ${confirmation?.total ?? 0}`
    deps.recordEvent(apiKey, 'Revoked', `The key is revoked; ${count} gateway pods have acknowledged it.`)
    return
  }
  const why =
    confirmation?.state === 'Waiting'
      ? `these gateway pods have not acknowledged it: ${confirmation.missing.join(', ')}`
      : 'Redis does not answer, so no gateway pod could acknowledge it'
  deps.recordEvent(
    apiKey,
    'RevocationUnconfirmed',
    `The key is revoked, but ${why}. Gateway pods get the revocation as soon as they reach Redis again.`,
  )
}

/** Remembers the Secret that a call returns. Garbage collection removes the Secret of a deleted ApiKey, so an error does not delay a deletion. */
async function rememberAfter(apiKey: ApiKey, deps: ApiKeyDeps, call: () => Promise<Secret | undefined>): Promise<void> {
  try {
    rememberSecret(apiKey, await call(), deps)
  } catch (error) {
    if (apiKey.metadata.deletionTimestamp === undefined) throw error
    deps.memory.rememberSecret(uidOf(apiKey), apiKey.metadata.generation ?? 0, { state: 'Unreadable' })
  }
}

/** @param secret as the API server returned it; undefined: there is none */
function rememberSecret(apiKey: ApiKey, secret: Secret | undefined, { memory, settings }: ApiKeyDeps): void {
  memory.rememberSecret(uidOf(apiKey), apiKey.metadata.generation ?? 0, observeSecret(apiKey, secret, settings.publicURL))
}

function secretRef(apiKey: ApiKey): ObjectRef {
  return { namespace: namespaceOf(apiKey), name: secretName(apiKey) }
}
