/** The policy of an ApiKey as its keyring line carries it. Pure. */
import { namespaceOf, uidOf } from '../kube/port.ts'
import type { KeyringLine, KeyringVerifier } from '../../gateway/shared/keyring-line.ts'
import { keyRecordOf } from '../../gateway/shared/keyring-line.ts'
import { encodeKeyRecord, KEY_RECORD_SCHEMA } from '../../gateway/shared/key-record.ts'
import type { ApiKey } from '../api/apikey.ts'

/** Voided verifiers that a line remembers: a late write of a deposed leader is recognised by them. */
const KEEP_VOIDED = 4

/** When the key stops working, ms since 1970; null = never. */
export function expiryOf(apiKey: ApiKey): number | null {
  const { expirationTime, ttlSeconds } = apiKey.spec
  if (expirationTime !== undefined) return atLeastZero(Date.parse(expirationTime))
  if (ttlSeconds !== undefined) return atLeastZero(Date.parse(apiKey.metadata.creationTimestamp ?? '') + ttlSeconds * 1000)
  return null
}

/** Records hold no time before 1970, and JSON would turn one that cannot be read into `null`, for ever: such a key is over. */
function atLeastZero(ms: number): number {
  return Number.isNaN(ms) ? 0 : Math.max(0, ms)
}

/**
 * The line that the manifest asks for, around the verifiers that exist. Used by reconcile and, after a loss of the store, by the rebuild:
 * a manifest that says Suspended suspends in both.
 */
export function lineOf(apiKey: ApiKey, verifiers: readonly KeyringVerifier[], rev: number): KeyringLine {
  return {
    v: KEY_RECORD_SCHEMA,
    rev,
    uid: uidOf(apiKey),
    ns: namespaceOf(apiKey),
    name: apiKey.metadata.name,
    st: apiKey.spec.state,
    exp: expiryOf(apiKey),
    gen: apiKey.metadata.generation ?? 0,
    models: [[...(apiKey.spec.models ?? ['*'])]],
    ver: [...verifiers],
    deleted: null,
  }
}

/** The verifiers with a fresh one. Voided ones are kept for a while only: a line holds few, and a crash loop must not fill it. */
export function withVerifier(former: readonly KeyringVerifier[], fresh: KeyringVerifier): readonly KeyringVerifier[] {
  const voided = former.filter(({ state }) => state === 'Revoked').slice(-KEEP_VOIDED)
  return [...former.filter((verifier) => verifier.state !== 'Revoked' || voided.includes(verifier)), fresh]
}

/** @returns whether two lines say the same but for the revision at which they were written */
export function sameLine(a: KeyringLine, b: KeyringLine): boolean {
  return JSON.stringify({ ...a, rev: 0 }) === JSON.stringify({ ...b, rev: 0 })
}

/** Record text of a line for the projection (revision not stamped yet); undefined for a deleted key: no record. */
export function recordText(line: KeyringLine): string | undefined {
  return line.deleted === null ? encodeKeyRecord(keyRecordOf({ ...line, rev: 0 })) : undefined
}

/** The verifier that the user's Secret belongs to: the newest one that was not voided. */
export function currentVerifier(line: KeyringLine | undefined): KeyringVerifier | undefined {
  return line?.ver
    .filter((verifier) => verifier.state !== 'Revoked')
    .reduce<KeyringVerifier | undefined>((a, b) => (a && a.n > b.n ? a : b), undefined)
}
