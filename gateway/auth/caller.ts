import type { KeyHash } from '../shared/credential.ts'
import { type TurnTaker, turnTaker } from '../process/request-turns.ts'
import type { KeyRecord } from '../shared/key-record.ts'

/** Who is asking: an authenticated key. Nothing but the key decides it. */
export interface Caller {
  readonly record: KeyRecord
  /** Of the Credential used. */
  readonly hash: KeyHash
  /** Public id of the Credential used; it may stand in logs. */
  readonly keyID: string
  /** From when on the key, or this Credential of it, works no more, ms since 1970; Infinity = never. */
  readonly expiresAt: number
  /** Its place among those whose requests begin. */
  readonly turns: TurnTaker
}

/** Everybody that a record lets in, by the hash of the Credential. */
export function* callersOf(record: KeyRecord): Iterable<[KeyHash, Caller]> {
  for (const { id, hash, expiresMs } of record.verifiers)
    yield [hash, { record, hash, keyID: id, expiresAt: Math.min(record.expiresMs ?? Infinity, expiresMs ?? Infinity), turns: turnTaker() }]
}
