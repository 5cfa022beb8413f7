/** The features of records that a gateway supports. Heartbeats name them. A key whose record needs another feature is not admitted. */
import { FORMAT, LIMITS_FEATURE } from '#contract/records/format.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { needsOf } from '#contract/records/limits-record.ts'

/** The features of this build. A gateway without a ledger does not support limits, since it must not admit keys with limits. */
export function heldFeatures(hasLedger: boolean): readonly string[] {
  return hasLedger ? FORMAT.features : FORMAT.features.filter((feature) => feature !== LIMITS_FEATURE)
}

/** Whether this gateway supports everything that a record needs. */
export function isHeld(record: Pick<KeyRecord, 'state' | 'limits' | 'budgets'>, held: readonly string[]): boolean {
  return needsOf(record).every((need) => held.includes(need))
}
