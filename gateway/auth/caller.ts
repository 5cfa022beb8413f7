import type { KeyRecord } from '../shared/key-record.ts'

/** Who is asking: an authenticated key. Nothing but the key decides it. */
export interface Caller {
  readonly record: KeyRecord
  /** Of the Credential used. */
  readonly hash: KeyRecord['ver'][number]['h']
  /** Public id of the Credential used; it may stand in logs. */
  readonly keyID: string
  /** From when on the key, or this Credential of it, works no more, ms since 1970; Infinity = never. */
  readonly expiresAt: number
}

/** Everybody that a record lets in, by the hash of the Credential. */
export function* callersOf(record: KeyRecord): Iterable<[KeyRecord['ver'][number]['h'], Caller]> {
  for (const { id, h, exp } of record.ver)
    yield [h, { record, hash: h, keyID: id, expiresAt: Math.min(record.exp ?? Infinity, exp ?? Infinity) }]
}
