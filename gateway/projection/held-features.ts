/**
 * What this gateway holds of the features that records may need. It reads limits and does not enforce them yet: a key with limits is not
 * admitted, and its condition LimitsEnforceable says why, since heartbeats name these features alone.
 */
import { FORMAT, LIMITS_FEATURE } from '../shared/format.ts'
import type { KeyRecord } from '../shared/key-record.ts'
import { needsOf } from '../shared/limits-record.ts'

/** Named in each heartbeat. */
export const HELD_FEATURES: readonly string[] = FORMAT.features.filter((feature) => feature !== LIMITS_FEATURE)

/** Whether a key may be admitted here by its record. */
export function isHeld(record: Pick<KeyRecord, 'state' | 'limits' | 'budgets' | 'needs'>): boolean {
  return needsOf(record).every((need) => HELD_FEATURES.includes(need))
}
