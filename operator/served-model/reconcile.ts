/** Reconcile of one ServedModel: gather, decide, write the record, say how it stands. */
import { encodeModelRecord } from '../../gateway/shared/model-record.ts'
import { sameStatus } from '../api/same-status.ts'
import { findCondition } from '../api/condition-list.ts'
import { identityOf, type ObjectRef, refKey, uidOf } from '../kube/port.ts'
import { servedModels } from '../kube/resources.ts'
import { type Confirmation, isConfirmed } from '../projection/acknowledgements.ts'
import { coldStartRecord, decide, type ModelChanges } from './decide.ts'
import type { ServedModelDeps } from './deps.ts'
import { describe } from './describe.ts'
import { gather } from './gather.ts'
import type { ObservedModel } from './observed.ts'

/** Longest wait for the gateways before the status is written, ms. */
const STATUS_WAIT_MS = 1_000
/** What waits for gateways or the store is looked at again this soon, ms. */
const WAITING_RETRY_MS = 2_000

/** Secrets cannot be watched: one that is missing is looked for this often, ms. */
const SECRET_RETRY_MS = 10_000

/** Uids of the models that were projected, by `namespace/name`: a deleted object no longer tells its uid. */
export type ProjectedModels = Map<string, string>

/** @returns when to look again, ms from now */
export async function reconcile(ref: ObjectRef, projected: ProjectedModels, deps: ServedModelDeps): Promise<{ requeueAfterMs?: number }> {
  const cached = deps.servedModels.get(ref)
  const model = cached?.metadata.deletionTimestamp === undefined ? cached : undefined
  const former = projected.get(refKey(ref))
  if (former !== undefined && former !== model?.metadata.uid) await forget(ref, former, projected, deps)
  if (!model) return {}
  const { observed, tokens } = await gather(model, deps)
  const changes = decide(observed)
  const uid = uidOf(model)
  deps.files.setTokens(uid, tokens)
  deps.files.setRecord(uid, changes.record && encodeModelRecord(coldStartRecord(changes.record)))
  projected.set(refKey(ref), uid)
  const confirmation = await project(uid, changes, deps)
  await writeStatus(observed, changes, confirmation, deps)
  return requeue(changes, confirmation)
}

function requeue({ accepted }: ModelChanges, confirmation: Confirmation | undefined): { requeueAfterMs?: number } {
  if (!confirmation || !isConfirmed(confirmation)) return { requeueAfterMs: WAITING_RETRY_MS }
  return accepted.reason === 'SecretNotFound' ? { requeueAfterMs: SECRET_RETRY_MS } : {}
}

async function forget(ref: ObjectRef, uid: string, projected: ProjectedModels, deps: ServedModelDeps): Promise<void> {
  deps.assertLeading()
  deps.files.setTokens(uid, [])
  deps.files.setRecord(uid, undefined)
  await deps.projection.delete('model', uid)
  deps.projection.forget('model', uid)
  projected.delete(refKey(ref))
}

/** @returns undefined when the store did not answer; the projection writes the record as soon as it does */
async function project(uid: string, { record }: ModelChanges, deps: ServedModelDeps): Promise<Confirmation | undefined> {
  deps.assertLeading()
  const text = record && encodeModelRecord(record)
  try {
    const present = deps.projection.revisionOf('model', uid, text)
    const rev = present ?? (await (text === undefined ? deps.projection.delete('model', uid) : deps.projection.put('model', uid, text)))
    return await deps.acknowledgements.wait(rev, uid, STATUS_WAIT_MS)
  } catch {
    return undefined // reported by the projection, and by the condition
  }
}

async function writeStatus(
  observed: ObservedModel,
  changes: ModelChanges,
  confirmation: Confirmation | undefined,
  deps: ServedModelDeps,
): Promise<void> {
  const { model } = observed
  const status = describe(observed, changes, confirmation, deps.clock.now())
  if (sameStatus(status, model.status)) return
  deps.assertLeading()
  await deps.kube.applyStatus(servedModels, { ...model, metadata: identityOf(model), status })
  const conflict =
    changes.accepted.reason === 'NameConflict' && findCondition(model.status?.conditions, 'Accepted')?.reason !== 'NameConflict'
  if (conflict) deps.recordEvent(model, 'NameConflict', changes.accepted.message)
}
