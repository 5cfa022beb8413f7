/** The input of `decide`: everything about one ApiKey that its next step depends on. Plain data. */
import type { KeyringLine } from '../../gateway/shared/keyring-line.ts'
import type { ApiKey } from '../api/apikey.ts'
import type { ObservedSecret } from './user-secret.ts'

/** How far the present record has come on the gateways. */
export interface ObservedConfirmation {
  readonly rev: number
  readonly ready: number
  readonly total: number
  readonly missing: readonly string[]
  /** false when the store did not answer. */
  readonly known: boolean
  /** How long this reconcile has waited for it, ms. */
  readonly waitedMs: number
}

/** One ApiKey and its surroundings at one moment. */
export interface Observed {
  readonly apiKey: ApiKey
  /** Committed line of the keyring. */
  readonly line: KeyringLine | undefined
  readonly secret: ObservedSecret
  /** This process still holds the Credential of the newest verifier. */
  readonly holdsCredential: boolean
  /** Revision that carries the present line (or, for a deleted key, its absence); undefined = not known to be written. */
  readonly projectedRev: number | undefined
  readonly confirmation: ObservedConfirmation | undefined
  /** Whether the last contact with the store worked. */
  readonly storeAvailable: boolean
  /** ms since 1970 */
  readonly now: number
  /** How long a deletion waits for acknowledgements, ms. */
  readonly revocationWaitMs: number
}
