/** What the mounted keyring has to say about records of the projection. Pure. */
import { isLive, keyRecordOf, type KeyringEntry } from '../shared/keyring-entry.ts'
import type { KeyRecord } from '../shared/key-record.ts'

/** Of most keys: there may be a hundred thousand. */
const NONE: readonly string[] = []

/** One key as the keyring knows it, as far as it may differ from the projection. */
export interface KeyringOverride {
  /** Deleted or Revoked: final, stands above every load. */
  readonly revoked: boolean
  /** Ids of revoked generations of the key material. */
  readonly revokedVerifiers: readonly string[]
  /** Used as a record where its `generation` is above that of the projection (a Redis that went back in time, or is away). */
  readonly entry: KeyringEntry
}

/** Reads entries into overrides; of two entries of one key (two shard counts during a change) a revoked one wins, then the newer one. */
export function keyringOverrides(entries: Iterable<KeyringEntry>): Map<string, KeyringOverride> {
  const found = new Map<string, KeyringOverride>()
  for (const entry of entries) {
    const next = overrideOf(entry)
    const former = found.get(entry.uid)
    if (!former || isAbove(next, former)) found.set(entry.uid, next)
  }
  return found
}

/**
 * The record that counts.
 * @param base of the projection; it wins a tie of `generation`
 */
export function withOverride(base: KeyRecord, override: KeyringOverride | undefined): KeyRecord {
  if (!override) return base
  if (override.revoked) return { ...base, state: 'Revoked' } // verifiers stay: who holds the value is told why it fails
  if (override.entry.generation > base.generation) return keyRecordOf(override.entry)
  if (override.revokedVerifiers.length === 0) return base
  return { ...base, verifiers: base.verifiers.filter(({ id }) => !override.revokedVerifiers.includes(id)) }
}

/** Whether an override can change anything about this record; the others need not be kept in memory. */
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
