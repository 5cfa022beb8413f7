/** The steps of keys with `source.type: Hash`. Pure. */
import { budgetsWithoutZone } from '#api/key-policy.ts'
import { hashSource, isHashReported, isHintTheValue, verifierOfHash } from './hash-source.ts'
import type { Observed } from './observed.ts'
import { type Answer, isWaitingForKeyring, levelOf } from './step.ts'

/** Takes the hash of the manifest, durable and live at once. Only a rotation that ends the former value is urgent. */
export function takeHash(observed: Observed): Answer {
  if (!lacksHash(observed) || !mayTakeHash(observed)) return undefined
  if (observed.revisionInMs > 0) return { do: 'wait', forMs: observed.revisionInMs }
  const { entry, apiKey } = observed
  const isUrgent = entry !== undefined && hashSource(apiKey)?.overlapMs === 0
  const id = entry === undefined && isHashReported(apiKey) ? apiKey.status?.keyID : undefined
  return { do: 'take-hash', level: isUrgent ? 'urgent' : levelOf(hasHistory(observed)), id }
}

function lacksHash({ apiKey, entry }: Observed): boolean {
  const source = hashSource(apiKey)
  return source !== undefined && verifierOfHash(source, entry?.verifiers) === undefined
}

function hasHistory({ apiKey, entry }: Observed): boolean {
  return entry !== undefined || apiKey.status !== undefined
}

function mayTakeHash(observed: Observed): boolean {
  const { apiKey, entry, namespaceLimit } = observed
  if (apiKey.spec.state === 'Revoked' || isWaitingForKeyring(observed) || refusesSource(observed)) return false
  return entry !== undefined || (namespaceLimit === undefined && budgetsWithoutZone(apiKey.spec).length === 0)
}

function refusesSource({ apiKey, isDuplicate }: Observed): boolean {
  const source = hashSource(apiKey)
  return source !== undefined && (isDuplicate || isHintTheValue(source))
}
