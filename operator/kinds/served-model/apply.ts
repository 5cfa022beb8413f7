/** Applies one step to a ServedModel: at most one API call. The operator writes Redis and the mounted Secrets in the background. */
import { identityOf, isKubeError, type ObjectRef, refKey, uidOf } from '#kube/port.ts'
import { servedModels } from '#api/resources.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { isEventReason } from '#api/event-table.ts'
import { findCondition } from '#api/condition-list.ts'
import { itemKey } from '../../loop/item.ts'
import { type CredentialRead, type CredentialRef, readCredential } from './backend-credential.ts'
import type { ServedModelDeps } from './kind.ts'
import { usedCredentials } from './observe.ts'
import { credentialsOf } from './model-registry.ts'
import type { ModelStep } from './steps.ts'
import type { DeletedModel, Observed, ObservedModel } from './observed.ts'

/** @throws KubeError if the API server refuses the call. A refused read of a Secret throws nothing */
export async function apply(step: ModelStep, observed: Observed, deps: ServedModelDeps): Promise<void> {
  if (observed.state === 'Deleted') return forget(observed, deps)
  switch (step.do) {
    case 'read-credential':
      return await read(step.credential, observed, deps)
    case 'project':
      return project(step, observed, deps)
    case 'mount':
      return mount(observed, deps)
    case 'write-status':
      return await writeStatus(observed, deps)
    case 'forget':
      return undefined // only for deleted objects
  }
}

function forget({ ref, uid }: DeletedModel, deps: ServedModelDeps): void {
  deps.projection.want('model', uid, undefined, 'urgent')
  deps.models.delete(uid)
  deps.mounted.deleteModel(uid)
  deps.acknowledgements.forget(itemKey({ kind: servedModels.kind, ref }))
  deps.memory.forget(ref, uid)
}

/** Stores a failed read like any other answer, so that the failure delays nothing that does not need the Secret. */
async function read({ namespace, name }: CredentialRef, reader: ObservedModel, deps: ServedModelDeps): Promise<void> {
  const secret = await readSecret({ namespace, name }, deps)
  const used = credentialsOf(deps.servedModels.get(reader.ref)).filter((ref) => ref.name === name)
  const changed = used.filter((ref) => deps.credentials.store(ref, 'problem' in secret ? secret : readCredential(ref, secret.found)))
  const users = new Map(changed.flatMap((ref) => deps.registry.usersOfCredential(ref)).map((user) => [refKey(user), user]))
  users.delete(refKey(reader.ref))
  for (const user of users.values()) deps.enqueue(servedModels.kind, user, 'change')
}

type SecretRead = { readonly found: Secret | undefined } | Extract<CredentialRead, { state: 'Unreadable' }>

async function readSecret(ref: ObjectRef, { kube }: ServedModelDeps): Promise<SecretRead> {
  try {
    return { found: await kube.get(secrets, ref) }
  } catch (error) {
    if (!isKubeError(error)) throw error
    return { state: 'Unreadable', problem: error.message }
  }
}

function project(step: ModelStep, { ref, model, text, desired }: ObservedModel, deps: ServedModelDeps): void {
  deps.projection.want('model', uidOf(model), text, step.level)
  if (desired.record === undefined) deps.models.delete(uidOf(model))
  else deps.models.set(desired.record)
  deps.memory.setWanted(ref, uidOf(model), text, desired.record)
}

function mount(observed: ObservedModel, deps: ServedModelDeps): void {
  const uid = uidOf(observed.model)
  const values = usedCredentials(observed).flatMap((ref) => deps.credentials.valueOf(ref) ?? [])
  deps.mounted.setModel(uid, { namespace: observed.ref.namespace, text: observed.coldStart, credentials: values })
  deps.memory.setMounted(observed.ref, uid, observed.mounted.key)
}

async function writeStatus({ model, status }: ObservedModel, deps: ServedModelDeps): Promise<void> {
  deps.ownWrites.remember(await deps.kube.applyStatus(servedModels, { ...model, metadata: identityOf(model), status }))
  const before = findCondition(model.status?.conditions, 'Accepted')?.reason
  const after = findCondition(status.conditions, 'Accepted')
  if (after && after.reason !== before && isEventReason(after.reason)) deps.recordEvent(model, after.reason, after.message)
}
