/** Which features of records a gateway holds. Its heartbeats name them, and it admits no key whose record needs another one. */
import { FORMAT, LIMITS_FEATURE } from '../shared/format.ts'
import type { KeyRecord } from '../shared/key-record.ts'
import { needsOf } from '../shared/limits-record.ts'

/** What this build reads, without limits for a gateway that has no ledger: a key with limits must not be admitted without them. */
export function heldFeatures(hasLedger: boolean): readonly string[] {
  return hasLedger ? FORMAT.features : FORMAT.features.filter((feature) => feature !== LIMITS_FEATURE)
}

/** Whether a key may be admitted by its record. */
export function isHeld(record: Pick<KeyRecord, 'state' | 'limits' | 'budgets' | 'needs'>, held: readonly string[]): boolean {
  return needsOf(record).every((need) => held.includes(need))
}
