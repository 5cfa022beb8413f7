/** When the ApiKey of a revoked key may go. Pure. Only keys that people made in the dashboard go by themselves: other ones are somebody's manifests, and would come back. */
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
export function retiresAtMs({ metadata, spec, status }: ApiKey, rule: RetirementRule | undefined): number | undefined {
  const isOfPerson = metadata.namespace === rule?.namespace && metadata.labels?.[CREATED_BY_LABEL] === CREATED_BY_DASHBOARD
  const revokedMs = Date.parse(status?.revokedTime ?? '')
  if (rule === undefined || !isOfPerson || spec.state !== 'Revoked' || Number.isNaN(revokedMs)) return undefined
  return revokedMs + rule.afterMs
}
