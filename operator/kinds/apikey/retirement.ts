/**
 * Decides when the ApiKey of a revoked key is deleted. Pure. The operator deletes only ApiKeys that people made in the dashboard: GitOps would create
 * others again from their manifests.
 */
import type { ApiKey } from '#api/apikey.ts'
import { CREATED_BY_DASHBOARD, CREATED_BY_LABEL } from '#api/metadata.ts'

export interface RetirementRule {
  /** Namespace of the keys that people make. */
  readonly namespace: string
  /** Time from the revocation, ms. */
  readonly afterMs: number
}

/** Longest wait at once, ms: timers take at most 24 days. */
export const RETIREMENT_CHECK_MS = 86_400_000

/** @returns ms since 1970; undefined for a key that stays */
export function retiresAtMs(apiKey: ApiKey, rule: RetirementRule | undefined): number | undefined {
  if (rule === undefined) return undefined
  const revokedMs = revokedMsOf(apiKey, rule)
  return revokedMs === undefined ? undefined : revokedMs + rule.afterMs
}

/**
 * The ApiKey to delete if the account has no room for another one: the one that was revoked first. One at a time, since a deletion in progress makes
 * room, too.
 */
export function firstToRetire(keys: Iterable<ApiKey>, rule: RetirementRule | undefined): ApiKey | undefined {
  if (rule === undefined) return undefined
  let first: { readonly apiKey: ApiKey; readonly revokedMs: number } | undefined
  for (const apiKey of keys) {
    if (apiKey.metadata.deletionTimestamp !== undefined) return undefined
    const revokedMs = revokedMsOf(apiKey, rule)
    if (revokedMs !== undefined && revokedMs < (first?.revokedMs ?? Infinity)) first = { apiKey, revokedMs }
  }
  return first?.apiKey
}

/** @returns undefined for a key that works, and for one that stays */
function revokedMsOf({ metadata, spec, status }: ApiKey, { namespace }: RetirementRule): number | undefined {
  const isOfPerson = metadata.namespace === namespace && metadata.labels?.[CREATED_BY_LABEL] === CREATED_BY_DASHBOARD
  const revokedMs = Date.parse(status?.revokedTime ?? '')
  return isOfPerson && spec.state === 'Revoked' && !Number.isNaN(revokedMs) ? revokedMs : undefined
}
