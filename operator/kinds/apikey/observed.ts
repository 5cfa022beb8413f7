/** The observed state of an ApiKey: the input of `nextStep` and `statusOf`. Plain data. */
import type { KeyringEntry, KeyringVerifier } from '#contract/records/keyring-entry.ts'
import type { KeyHash } from '#contract/values/credential.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { KubeErrorCode, ObjectRef } from '#kube/port.ts'
import type { KeyAccount } from '../../accounts/accounts.ts'
import type { Interval } from '../../shards/spend-entry.ts'
import type { Confirmation } from '../../projection/acknowledgements.ts'
import type { Projection } from '../../projection/projection.ts'
import type { SubjectUsage } from '../../books/subject-ledger.ts'
import type { ObservedSecret } from './user-secret.ts'
import type { ValueUse } from './used-values.ts'

/** The call that failed: a read or a write of the user's Secret, a write of the keyring, or any other call. */
export type FailureTopic = 'SecretRead' | 'SecretWrite' | 'Keyring' | 'Other'

export interface Failure {
  readonly topic: FailureTopic
  readonly code: KubeErrorCode | 'KeyringFull'
  /** Names the failed call and the server's reason, and never a value. */
  readonly message: string
  /** ms until the keyring may be written again; 0 for the other topics, whose steps have a back-off of their own. */
  readonly retryInMs: number
}

/** Whether every serving gateway enforces limits, or knows accounts. Unknown: no gateway was polled yet. */
export type GatewaySupport = 'Unknown' | 'TooOld' | 'Current'

/** A bound of the keys of an account: of those that are neither revoked nor expired, or of all. */
export interface AccountLimit {
  readonly most: number
  readonly of: 'ActiveKeys' | 'AllKeys'
}

export interface Observed {
  readonly apiKey: ApiKey
  readonly isConfirmedLive: boolean
  /** Newest entry of the keyring, durable or pending. */
  readonly entry: KeyringEntry | undefined
  readonly isCommitting: boolean
  /** Whether a lost key may have a record in Redis: Redis has not answered since this process has started, or has one that is not restored yet. */
  readonly mayBeInRedis: boolean
  /** The keyring has an entry that this version cannot read and never changes. */
  readonly isUnreadable: boolean
  /** Whether gateways know that records of unreadable keys are lacking (`unread-keys.ts`). */
  readonly hasStandIn: boolean
  /** The generation of the user's Secret: the newest live verifier. */
  readonly verifier: KeyringVerifier | undefined
  readonly secret: ObservedSecret
  readonly isSecretWritable: boolean
  readonly holdsCredential: boolean
  /** The revision of the record, and ms since then; undefined until the projection is known to have the record, or for a deleted key to lack it. */
  readonly projected: ReturnType<Projection['present']>
  readonly isProjecting: boolean
  /** Progress of the record on the gateways; undefined until the record is projected. */
  readonly confirmation: Confirmation | undefined
  readonly storeAvailable: boolean
  readonly version: number
  /** ms since 1970. */
  readonly now: number
  /** Whether `now` is the time of the store. If it is not, it may be wrong by days: nothing may end by it. */
  readonly isTimeKnown: boolean
  /** ms since this process first saw the deletion, on its own clock: the API server's may differ by minutes. */
  readonly deletingForMs: number
  /** Longest wait of a deletion for acknowledgements, ms. */
  readonly revocationWaitMs: number
  /** When the ApiKey of a revoked key may be deleted, ms since 1970; undefined: it stays. */
  readonly retiresAtMs: number | undefined
  /** The revoked key whose ApiKey makes room for this one in the account; undefined: there is room, or no such key. */
  readonly spareKey: { readonly ref: ObjectRef; readonly uid: string } | undefined
  /** ms until an edit that does not stop a value may make another revision; 0 = now. */
  readonly revisionInMs: number
  /** The bound of keys, if the namespace has reached it; undefined if there is room or the key exists. */
  readonly namespaceLimit: number | undefined
  /** Whether another key has the value, or comes first. */
  readonly isDuplicate: boolean
  /** Whether a hash needs no proof in the namespace of the key. */
  readonly mayBeUnproven: boolean
  /** What the namespace may do with the hash of the manifest, if the key does not have it. */
  readonly valueUse: ValueUse
  /** Hashes of a key with source.type Hash whose revocation is not recorded yet. */
  readonly unrecordedHashes: readonly KeyHash[]
  /** Whether an ApiKey of another namespace names a hash of this key. */
  readonly isNamedElsewhere: boolean
  /** Whether the key was never issued, and nothing of it can be lost. */
  readonly isNew: boolean
  /** What the account of the key says; undefined for a key without one, or if there is no such Account. */
  readonly account: KeyAccount | undefined
  /** The plan in effect for the key; undefined for a key without an account. */
  readonly plan: PlanRecord | undefined
  /** Whether keys of the namespace need an account. */
  readonly isAccountRequired: boolean
  /** Whether this installation has accounts. */
  readonly hasAccounts: boolean
  /** The bound of keys, if the account has no place for this new key; undefined if there is room or the key exists. */
  readonly accountLimit: AccountLimit | undefined
  readonly gatewayLimits: GatewaySupport
  /** The same for accounts, and for proofs. */
  readonly gatewayAccounts: GatewaySupport
  readonly gatewayProofs: GatewaySupport
  /** Callable models without a price, for a key with a blocking budget in Currency or of a prepaid account. Sorted. */
  readonly unpricedModels: readonly string[]
  /** Whether the key can call no other models. */
  readonly isUnpriced: boolean
  /** Callable models without a bound of their answers, for a key with a blocking budget. Sorted. */
  readonly unboundedModels: readonly string[]
  /** Use of the key for the status; undefined keeps the use that the status shows. */
  readonly usage: SubjectUsage | undefined
  /** Period in which spend of the key may have been lost; undefined if there is none, or if it is too long ago. */
  readonly spendLoss: Interval | undefined
  /** Names of budgets whose spend in Redis is not believed. */
  readonly heldBack: readonly string[]
  readonly failures: readonly Failure[]
}
