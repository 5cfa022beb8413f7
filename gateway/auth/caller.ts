import type { KeyHash } from '#contract/values/credential.ts'
import { type TurnTaker, turnTaker } from '../http/request-turns.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'

/** An authenticated key. No header or field besides the Credential has an influence on it. */
export interface Caller {
  readonly record: KeyRecord
  /** Hash of the Credential in use. */
  readonly hash: KeyHash
  /** Public id of the Credential in use. Logs may show it. */
  readonly keyID: string
  /** Time from which the key or this Credential no longer works, ms since 1970. Infinity: never. */
  readonly expiresAt: number
  /** Its turns among all keys whose requests start (`process/request-turns.ts`). */
  readonly turns: TurnTaker
}

/** The callers that a record admits, with the hashes of their Credentials. */
export function* callersOf(record: KeyRecord): Iterable<[KeyHash, Caller]> {
  for (const { id, hash, expiresMs } of record.verifiers)
    yield [hash, { record, hash, keyID: id, expiresAt: Math.min(record.expiresMs ?? Infinity, expiresMs ?? Infinity), turns: turnTaker() }]
}
