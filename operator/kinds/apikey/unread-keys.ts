/**
 * Keys that work, but whose keyring entry only another version can read. If Redis has lost the record of such a key, this operator cannot write
 * it again. Gateways would then answer 401 to the value of a valid key. One record that no version reads tells them that keys are lacking: they
 * answer 503 to every Credential that they do not know.
 */
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { uidOf } from '#kube/port.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import { findByUid } from '../kind.ts'
import type { ApiKeyDeps } from './kind.ts'

const ID = 'unread-keys'
/** A version rather than a need: gateways that know such a key go on with its last good record. */
const TEXT = JSON.stringify({ v: Number.MAX_SAFE_INTEGER, rev: 0, uid: ID })

type UnreadDeps = Pick<ApiKeyDeps, 'keyring' | 'apiKeys' | 'settings' | 'projection'>

/** The record that stands for all lacking ones. @param has whether the store has a record of this uid @returns undefined if none is lacking */
export function standInFor(deps: UnreadDeps, has: (uid: string) => boolean): ProjectionChange | undefined {
  return [...unreadKeys(deps)].some((uid) => !has(uid)) ? { kind: 'key', op: 'put', id: ID, text: TEXT } : undefined
}

/** Whether a uid is that of the record which stands for others. It stays until `settleStandIn` removes it, after all records are written. */
export function isStandIn(uid: string): boolean {
  return uid === ID
}

export function hasStandIn({ projection }: Pick<UnreadDeps, 'projection'>): boolean {
  return projection.isPending('key', ID) || projection.present('key', ID, TEXT) !== undefined
}

export function projectStandIn({ projection }: Pick<UnreadDeps, 'projection'>): void {
  projection.want('key', ID, TEXT, 'change')
}

/** Removes the record once every key that works has a readable entry. */
export function settleStandIn(deps: UnreadDeps): void {
  if ([...unreadKeys(deps)].length === 0) deps.projection.want('key', ID, undefined, 'background')
}

/** uids. ApiKeys of a namespace that is not synced may exist. */
function* unreadKeys({ keyring, apiKeys, settings: { watchNamespaces } }: UnreadDeps): IterableIterator<string> {
  const unreadable = [...keyring.unreadable()]
  if (unreadable.length === 0) return
  for (const apiKey of apiKeys.list()) if (isWorking(apiKey) && keyring.isUnreadable(uidOf(apiKey))) yield uidOf(apiKey)
  if (watchNamespaces.every((namespace) => apiKeys.isSynced(namespace))) return
  for (const { id } of unreadable) if (id !== undefined && findByUid(id, apiKeys) === undefined) yield id
}

function isWorking({ metadata, spec }: ApiKey): boolean {
  return spec.state === 'Active' && metadata.deletionTimestamp === undefined && metadata.finalizers?.includes(FINALIZER) === true
}
