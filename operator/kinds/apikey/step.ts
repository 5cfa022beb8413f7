/** The steps of an ApiKey, and functions that several checks of `steps.ts` share. Pure. */
import type { KeyringEntry, KeyringVerifier } from '#contract/records/keyring-entry.ts'
import type { KeyHash } from '#contract/values/credential.ts'
import type { ObjectRef } from '#kube/port.ts'
import type { Level } from '../../loop/level.ts'
import type { StepBase, Wait } from '../../loop/reconciler.ts'
import type { Observed } from './observed.ts'

export type Step = StepBase &
  (
    | { readonly do: 'add-finalizer' }
    /** Reads the ApiKey live, because the cache is older than the keyring entry. */
    | { readonly do: 'read-live' }
    | { readonly do: 'read-secret' }
    /** Restores a lost entry from its record in Redis. */
    | { readonly do: 'recover' }
    /** Sends the Secret as a dry run: quota, policies and rights are checked, and nothing is stored. */
    | { readonly do: 'try-secret' }
    /** Mints generation `number`, into the keyring first. */
    | { readonly do: 'mint'; readonly number: number }
    /** Records hashes of the namespace, for ever. */
    | { readonly do: 'record-values'; readonly hashes: readonly KeyHash[]; readonly isRevoked: boolean }
    /** Takes the hash of the manifest into the keyring. `id`: the public id of the lost entry; undefined: a new id. */
    | { readonly do: 'take-hash'; readonly id: string | undefined }
    /** Records the delivery. If a crash loses the mark, the next reconcile derives it from the Secret. */
    | { readonly do: 'mark-issued'; readonly entry: KeyringEntry }
    /** Sends the entry to the keyring and its record to the gateways at once. `isUncounted`: without the bound on revisions of one key. */
    | { readonly do: 'commit'; readonly entry: KeyringEntry; readonly isRestored?: true; readonly isUncounted?: true }
    | { readonly do: 'project' }
    | { readonly do: 'write-secret'; readonly verifier: KeyringVerifier }
    | { readonly do: 'refresh-secret' }
    | { readonly do: 'delete-secret'; readonly uid: string }
    /** Deletes the ApiKey of a key that was revoked: its own one, or one that makes room. */
    | { readonly do: 'delete-key'; readonly ref: ObjectRef; readonly uid: string }
    | { readonly do: 'write-status' }
    | { readonly do: 'remove-finalizer'; readonly isConfirmed: boolean; readonly hadKey: boolean }
  )

export type Answer = Step | Wait | undefined

/** The level of a step: new objects wait for existing objects. */
export function levelOf(exists: boolean): Level {
  return exists ? 'change' : 'create'
}

/** Deletes the Secret, with the uid of the last read as a precondition. */
export function deleteOwnSecret({ secret }: Observed): Answer {
  return secret.state === 'Ours' ? { do: 'delete-secret', level: 'change', uid: secret.uid } : undefined
}

/** Whether the keyring has refused an entry of this key, and the next try is later. */
export function isWaitingForKeyring({ failures }: Observed): boolean {
  return failures.some(({ topic, retryInMs }) => topic === 'Keyring' && retryInMs > 0)
}

/** Whether the keyring has refused the newest entry of this key. */
export function wasRefused({ failures }: Observed): boolean {
  return failures.some(({ topic }) => topic === 'Keyring')
}

export function keyringRetryMs({ failures }: Observed): number {
  return Math.max(...failures.map(({ retryInMs }) => retryInMs))
}

/** Records that the values of a revoked key are over, so that no other key of the namespace revives one. A failure delays no deletion. */
export function recordRevocation(observed: Observed): Answer {
  const { apiKey, unrecordedHashes: hashes, failures } = observed
  const isGivenUp = apiKey.metadata.deletionTimestamp !== undefined && failures.some(({ topic }) => topic === 'Keyring')
  if (hashes.length === 0 || isGivenUp || isWaitingForKeyring(observed)) return undefined
  return { do: 'record-values', level: 'change', hashes, isRevoked: true }
}
