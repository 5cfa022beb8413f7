import type { KeyRecord } from '../shared/key-record.ts'

/** Who is asking: an authenticated key. Nothing but the key decides it. */
export interface Caller {
  readonly record: KeyRecord
  /** Public id of the Credential used; it may stand in logs. */
  readonly keyID: string
}
