/** Changes of the mounted keyring to records of the projection. Pure. */
import { isLive, keyRecordOf, type KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'

/** Shared by most keys, since there may be a hundred thousand. */
const NONE: readonly string[] = []

/** The fields of a key that the keyring may know better than the projection. */
export interface KeyringOverride {
  /** Deleted or Revoked. That is final and outlasts every load. */
  readonly revoked: boolean
  /** Ids of revoked generations of the key material. */
  readonly revokedVerifiers: readonly string[]
  /** Replaces the record of the projection where its `generation` is higher: Redis is older than the keyring, or does not answer. */
  readonly entry: KeyringEntry
}

/**
 * Makes overrides of entries. Two shard counts may exist during a change, so a key may have two entries: a revoked one wins, then the newer
 * one.
 */
export function keyringOverrides(entries: Iterable<KeyringEntry>): Map<string, KeyringOverride> {
  const found = new Map<string, KeyringOverride>()
  for (const entry of entries) {
    const next = overrideOf(entry)
    const former = found.get(entry.uid)
    if (!former || isAbove(next, former)) found.set(entry.uid, next)
  }
  return found
}

/** Returns the record in force. @param base of the projection; it wins if both have the same `generation` */
export function withOverride(base: KeyRecord, override: KeyringOverride | undefined): KeyRecord {
  if (!override) return base
  if (override.revoked) return { ...base, state: 'Revoked' } // the verifiers stay, so that a client with the value of the key gets "revoked" as the reason
  if (override.entry.generation > base.generation) return keyRecordOf(override.entry)
  if (override.revokedVerifiers.length === 0) return base
  return { ...base, verifiers: base.verifiers.filter(({ id }) => !override.revokedVerifiers.includes(id)) }
}

/** Whether an override can change anything about this record. Overrides that cannot are not kept in memory. */
export function isRelevant(base: KeyRecord | undefined, override: KeyringOverride): boolean {
  return override.revoked || (base !== undefined && withOverride(base, override) !== base)
}

function overrideOf(entry: KeyringEntry): KeyringOverride {
  const revoked = entry.deletedMs !== null || entry.state === 'Revoked'
  const isWhole = entry.verifiers.every(isLive)
  return { revoked, revokedVerifiers: isWhole ? NONE : entry.verifiers.filter((one) => !isLive(one)).map(({ id }) => id), entry }
}

function isAbove(next: KeyringOverride, former: KeyringOverride): boolean {
  if (next.revoked !== former.revoked) return next.revoked
  if (next.entry.generation !== former.entry.generation) return next.entry.generation > former.entry.generation
  return next.entry.revision > former.entry.revision
}
