/** The steps of an ApiKey that is being deleted. Pure. The order of the checks is the order of the promises, as in `steps.ts`. */
import { FINALIZER } from '#api/apikey.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { tombstoneOf } from '#contract/records/tombstone.ts'
import type { Check } from '../../loop/reconciler.ts'
import { isSettled } from '../../projection/programmed.ts'
import { isHashKey } from './hash-source.ts'
import type { Observed } from './observed.ts'
import { type Answer, deleteOwnSecret, isWaitingForKeyring, keyringRetryMs, recordRevocation, type Step } from './step.ts'

export const DELETED_STEPS: readonly Check<Observed, Step>[] = [
  leaveAlone,
  revokeDeleted,
  projectDeletion,
  awaitProof,
  readSecretOfDeleted,
  deleteOwnSecret,
  recordRevocation,
  removeFinalizer,
]

/** Leaves an ApiKey that the operator has never held. If the finalizer was removed by force, the key must stop working all the same. */
function leaveAlone(observed: Observed): Answer {
  return isHeld(observed) || observed.entry !== undefined || observed.isUnreadable ? undefined : { do: 'wait' }
}

function isHeld({ apiKey }: Observed): boolean {
  return apiKey.metadata.finalizers?.includes(FINALIZER) === true
}

function revokeDeleted(observed: Observed): Answer {
  const { entry, now } = observed
  if (entry === undefined || entry.deletedMs !== null) return undefined
  if (isWaitingForKeyring(observed)) return { do: 'wait', forMs: keyringRetryMs(observed) }
  return { do: 'commit', level: 'urgent', entry: tombstoneOf(entry, now), isUncounted: true }
}

/** Removes the record. For an unreadable entry, too: the entry stays for the version that can read it. */
function projectDeletion({ projected, isProjecting, storeAvailable }: Observed): Answer {
  return projected === undefined && !isProjecting && storeAvailable ? { do: 'project', level: 'urgent' } : undefined
}

/** Waits until every serving pod has acknowledged the deletion, or until the bound of the wait. The tombstone must be durable in any case. */
function awaitProof(observed: Observed): Answer {
  if (observed.isCommitting) return { do: 'wait' }
  if (isSettled(observed) || observed.deletingForMs >= observed.revocationWaitMs) return undefined
  return { do: 'wait', forMs: observed.revocationWaitMs - observed.deletingForMs }
}

/** Best effort: garbage collection removes the Secret too, so a failed read delays nothing. */
function readSecretOfDeleted(observed: Observed): Answer {
  const { apiKey, secret, entry } = observed
  return !isHashKey(apiKey) && secret.state === 'Unknown' && hadKey(entry) ? { do: 'read-secret', level: 'change' } : undefined
}

function removeFinalizer(observed: Observed): Answer {
  if (!isHeld(observed)) return { do: 'wait' } // another finalizer holds the object
  return { do: 'remove-finalizer', level: 'change', isConfirmed: isSettled(observed), hadKey: hadKey(observed.entry) }
}

function hadKey(entry: KeyringEntry | undefined): boolean {
  return entry !== undefined && entry.verifiers.length > 0
}
