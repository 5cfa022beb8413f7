/** Maps a watch event of an ApiKey to the level of its reconcile. Pure. */
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import type { Level } from '../../loop/level.ts'
import { endsFormerValue } from './hash-source.ts'
import { entryOf, restricts } from './keyring-entry.ts'

/** Inputs that the comparison ignores. */
const BARE = { verifiers: [], revision: 0, version: 1 } as const

/** @returns undefined if no reconcile is needed: the operator's own writes come back as events */
export function urgencyOf(before: ApiKey | undefined, after: ApiKey): Level | undefined {
  if (before === undefined || before.metadata.uid !== after.metadata.uid) return levelOfNew(after)
  if (before.metadata.deletionTimestamp !== after.metadata.deletionTimestamp) return 'urgent'
  if (before.metadata.generation !== after.metadata.generation) return restrictsEdit(before, after) ? 'urgent' : levelOfEdit(after)
  return hasLostFinalizer(before, after) || isAnnotated(before, after) ? levelOfEdit(after) : undefined
}

function restrictsEdit(before: ApiKey, after: ApiKey): boolean {
  return endsFormerValue(before, after) || restricts(entryOf(before, BARE), entryOf(after, BARE))
}

function hasLostFinalizer(before: ApiKey, after: ApiKey): boolean {
  return before.metadata.finalizers?.includes(FINALIZER) === true && after.metadata.finalizers?.includes(FINALIZER) !== true
}

function isAnnotated(before: ApiKey, after: ApiKey): boolean {
  return JSON.stringify(before.metadata.annotations ?? {}) !== JSON.stringify(after.metadata.annotations ?? {})
}

function levelOfNew(apiKey: ApiKey): Level {
  if (apiKey.metadata.deletionTimestamp !== undefined || apiKey.spec.state !== 'Active') return 'urgent'
  return levelOfEdit(apiKey)
}

/** New objects wait for existing objects. */
function levelOfEdit({ metadata }: ApiKey): Level {
  return metadata.finalizers?.includes(FINALIZER) === true ? 'change' : 'create'
}
