/** The input of `nextStep` and `statusOf`: everything about one ApiKey that its next step depends on. Plain data. */
import type { KeyringEntry, KeyringVerifier } from '../../gateway/shared/keyring-entry.ts'
import type { ApiKey } from '../api/apikey.ts'
import type { KubeErrorCode } from '../kube/port.ts'
import type { Interval } from '../ledger/spend-entry.ts'
import type { Confirmation } from '../projection/acknowledgements.ts'
import type { KeyUsage } from './usage.ts'
import type { ObservedSecret } from './user-secret.ts'

/** What failed: reading or writing the user's Secret, writing the keyring, or any other call. */
export type FailureTopic = 'SecretRead' | 'SecretWrite' | 'Keyring' | 'Other'

/** The last failure of one topic, as the status reports it. */
export interface Failure {
  readonly topic: FailureTopic
  readonly code: KubeErrorCode | 'KeyringFull'
  /** Names what failed and the server's reason; never a value. */
  readonly message: string
  /** ms until the keyring may be written again; 0 for the other topics, whose steps have a back-off of their own. */
  readonly retryInMs: number
}

/** Where the present record stands in the projection. */
export interface Projected {
  readonly revision: number
  /** ms since this process wrote or found it there. */
  readonly forMs: number
}

/** Whether every gateway that serves holds limits. Unknown: none has been asked yet. */
export type GatewayLimits = 'Unknown' | 'TooOld' | 'Current'

/** One ApiKey and its surroundings at one moment. */
export interface Observed {
  readonly apiKey: ApiKey
  /** The API server itself has answered with this state of the ApiKey. */
  readonly isConfirmedLive: boolean
  /** Newest entry of the keyring, durable or not. */
  readonly entry: KeyringEntry | undefined
  /** The entry is not durable yet. */
  readonly isCommitting: boolean
  /** The keyring holds an entry that this version cannot read; it is left as it is. */
  readonly isUnreadable: boolean
  /** The generation that the user's Secret belongs to: the newest one that has not ended. */
  readonly verifier: KeyringVerifier | undefined
  readonly secret: ObservedSecret
  /** A trial write of the Secret has just succeeded. */
  readonly isSecretWritable: boolean
  /** This process still holds the Credential of `verifier`. */
  readonly holdsCredential: boolean
  /** undefined: the record (for a deleted key, its absence) is not known to be in the projection. */
  readonly projected: Projected | undefined
  /** The record is on its way to Redis. */
  readonly isProjecting: boolean
  /** How far the record has come on the gateways; undefined while it is not projected. */
  readonly confirmation: Confirmation | undefined
  /** Whether the last contact with Redis worked. */
  readonly storeAvailable: boolean
  /** Version in which entries and records are written. */
  readonly version: number
  /** ms since 1970. */
  readonly now: number
  /** ms since this process first saw the deletion. Its own clock: the API server's may differ by minutes. */
  readonly deletingForMs: number
  /** Longest wait of a deletion for acknowledgements, ms. */
  readonly revocationWaitMs: number
  /** ms until an edit that does not restrict may make another revision; 0: now. */
  readonly revisionInMs: number
  /** The namespace has as many keys as it may have; the bound. undefined: there is room, or the key exists. */
  readonly namespaceLimit: number | undefined
  /** For a key with source.type Hash: another key has the value of its manifest. */
  readonly isDuplicate: boolean
  readonly gatewayLimits: GatewayLimits
  /** Models without a price that the key may call, for a key with a budget of money that blocks. Sorted. */
  readonly unpricedModels: readonly string[]
  /** Models without a bound of their answers that the key may call, for a key with a budget that blocks. Sorted. */
  readonly unboundedModels: readonly string[]
  /** What the status shall show of the use of the key; undefined: what stands there. */
  readonly usage: KeyUsage | undefined
  /** Time in which spend of the key may have been lost; undefined: none, or too long ago. */
  readonly spendLoss: Interval | undefined
  readonly failures: readonly Failure[]
}
