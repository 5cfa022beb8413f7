/** The steps of an ApiKey, and what several checks of `next-step.ts` share. Pure. */
import type { KeyringEntry, KeyringVerifier } from '../../gateway/shared/keyring-entry.ts'
import type { Level } from '../loop/level.ts'
import type { StepBase, Wait } from '../loop/reconciler.ts'
import type { Observed } from './observed.ts'

/** One thing to do. After each, the world is observed again. */
export type Step = StepBase &
  (
    | { readonly do: 'add-finalizer' }
    /** Reads the ApiKey itself, past the cache, which is older than the keyring entry. */
    | { readonly do: 'read-live' }
    | { readonly do: 'read-secret' }
    /** Writes the Secret on trial: quota, policies and rights answer, and nothing is stored. */
    | { readonly do: 'try-secret' }
    /** New key material, generation `number`: into the keyring first. */
    | { readonly do: 'mint'; readonly number: number }
    /** The hash of the manifest, of which the keyring has no verifier. `id`: the public id of the lost entry; undefined: a new one. */
    | { readonly do: 'take-hash'; readonly id: string | undefined }
    /** Records delivery. If a crash loses the mark, the next reconcile derives it from the Secret. */
    | { readonly do: 'mark-issued'; readonly entry: KeyringEntry }
    /** Sends the entry to the keyring and its record to the gateways, both at once. `isUncounted`: past the bound on revisions of one key. */
    | { readonly do: 'commit'; readonly entry: KeyringEntry; readonly isRestored?: true; readonly isUncounted?: true }
    /** Sends the record of the present entry to the gateways. */
    | { readonly do: 'project' }
    | { readonly do: 'write-secret'; readonly verifier: KeyringVerifier }
    | { readonly do: 'refresh-secret' }
    | { readonly do: 'delete-secret'; readonly uid: string }
    | { readonly do: 'write-status' }
    | { readonly do: 'remove-finalizer'; readonly isConfirmed: boolean; readonly hadKey: boolean }
  )

/** What a check says: a step, a wait, or nothing. */
export type Answer = Step | Wait | undefined

/** New objects go behind those that exist. */
export function levelOf(exists: boolean): Level {
  return exists ? 'change' : 'create'
}

/** The Secret goes only if it is the one that was read. */
export function deleteOwnSecret({ secret }: Observed): Answer {
  return secret.state === 'Ours' ? { do: 'delete-secret', level: 'change', uid: secret.uid } : undefined
}

/** The keyring has refused an entry of this key and is asked again later. */
export function isWaitingForKeyring({ failures }: Observed): boolean {
  return failures.some(({ topic, retryInMs }) => topic === 'Keyring' && retryInMs > 0)
}

/** @returns ms until then */
export function keyringRetryMs({ failures }: Observed): number {
  return Math.max(...failures.map(({ retryInMs }) => retryInMs))
}
