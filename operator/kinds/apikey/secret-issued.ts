/** Derives the condition SecretIssued: whether the user's Secret holds the key, and why not. Pure. */
import type { ApiKeyCondition } from '#api/conditions.ts'
import { isHashKey } from './hash-source.ts'
import { isKeyLost, isNameTaken } from './key-state.ts'
import type { Failure, Observed } from './observed.ts'
import { secretName } from './user-secret.ts'

type Outcome = Pick<Extract<ApiKeyCondition, { type: 'SecretIssued' }>, 'reason' | 'message'>

const NOT_APPLICABLE: Outcome = {
  reason: 'NotApplicable',
  message: 'spec.source.type is Hash: the value exists elsewhere, and no Secret is written.',
}

/** @returns reason and message of the condition */
export function secretIssued(observed: Observed): Outcome {
  const { apiKey, isUnreadable, verifier } = observed
  if (isUnreadable)
    return { reason: 'EntryUnreadable', message: `Secret ${secretName(apiKey)} is left as it is until the operator is updated.` }
  if (isHashKey(apiKey)) return NOT_APPLICABLE
  if (verifier?.state === 'Issued') return issued(observed, verifier.hash)
  return stopped(observed) ?? blocked(observed) ?? failed(observed) ?? waiting(observed)
}

/** The outcome for an issued key, by the state of its Secret. */
function issued({ secret, apiKey, failures }: Observed, hash: string): Outcome {
  const name = secretName(apiKey)
  const isRevoked = apiKey.spec.state === 'Revoked'
  const unread = failures.find(({ topic }) => topic === 'SecretRead')
  if (unread) return unreadable(unread, `${name} cannot be read: ${unread.message}. The key works.`)
  switch (secret.state) {
    case 'Absent':
      return isRevoked
        ? { reason: 'Issued', message: `The key was issued; Secret ${name} was removed with its revocation.` }
        : {
            reason: 'SecretMissing',
            message: `Secret ${name} was deleted. The key works, but only clients that already hold the value know it. For a new value, create a new ApiKey.`,
          }
    case 'Foreign':
    case 'LeftOver':
      return {
        reason: 'SecretConflict',
        message: `Secret ${name} was replaced by one that does not belong to this ApiKey. The key works; the value in that Secret is not the key.`,
      }
    case 'Ours':
      return secret.hash === hash
        ? { reason: 'Issued', message: `Secret ${name} holds the key.` }
        : {
            reason: 'SecretModified',
            message: `The value in Secret ${name} is not the issued key and is left as it is. For a new value, create a new ApiKey.`,
          }
    default:
      return { reason: 'Issued', message: `Secret ${name} holds the key.` } // not read since the start of this process
  }
}

function unreadable({ code }: Failure, what: string): Outcome {
  const remedy =
    code === 'Forbidden'
      ? "Grant the operator's ServiceAccount get on secrets in this namespace."
      : 'The administrator finds the reason in the log of the API server; the operator tries again by itself.'
  return { reason: 'SecretUnreadable', message: `Secret ${what} ${remedy}` }
}

/** The outcome if no key will be issued for this manifest. */
function stopped(observed: Observed): Outcome | undefined {
  if (observed.apiKey.spec.state === 'Revoked')
    return { reason: 'Revoked', message: 'The key was revoked before it was issued, so there is no Secret.' }
  if (isKeyLost(observed))
    return {
      reason: 'KeyLost',
      message: 'The key was issued, and its hash has been lost. The operator will not issue a replacement on its own.',
    }
  return undefined
}

function blocked(observed: Observed): Outcome | undefined {
  const { secret, apiKey } = observed
  const name = secretName(apiKey)
  if (secret.state === 'LeftOver')
    return { reason: 'Pending', message: `Secret ${name} of a deleted ApiKey is about to be removed; then the operator issues the key.` }
  if (!isNameTaken(observed)) return undefined
  if (secret.state === 'Foreign' && secret.apiKey !== undefined) {
    const owner = `Secret ${name} holds the key of ApiKey ${secret.apiKey}, the only copy of its value; it is left as it is.`
    return { reason: 'SecretConflict', message: `${owner} Create an ApiKey with another secret.name.` }
  }
  const message = `Secret ${name} exists and was not made for this ApiKey; it is left as it is. Remove it, or create an ApiKey with another secret.name.`
  return { reason: 'SecretConflict', message }
}

function failed({ failures, apiKey }: Observed): Outcome | undefined {
  const name = secretName(apiKey)
  const [failure] = failures
  if (failure === undefined) return undefined
  if (failure.topic === 'SecretRead') return unreadable(failure, `${name} cannot be read: ${failure.message}.`)
  if (failure.topic === 'Keyring') return keyringFailure(failure)
  return refusedWrite(failure, name)
}

function keyringFailure({ code, message }: Failure): Outcome {
  if (code === 'KeyringFull')
    return {
      reason: 'KeyringFull',
      message: `The keyring has no room for the key: ${message}. Ask the administrator; the operator issues the key as soon as there is room.`,
    }
  return { reason: 'Pending', message: `The keyring cannot be written: ${message}. The operator tries again by itself.` }
}

function refusedWrite({ code, message }: Failure, name: string): Outcome {
  switch (code) {
    case 'QuotaExceeded':
      return {
        reason: 'QuotaExceeded',
        message: `A quota refuses Secret ${name}: ${message}. Raise the quota or delete Secrets; then the operator issues the key.`,
      }
    case 'AdmissionDenied':
      return {
        reason: 'AdmissionDenied',
        message: `An admission policy refuses Secret ${name}: ${message}. Change the ApiKey or the policy; then the operator issues the key.`,
      }
    case 'Forbidden':
      return {
        reason: 'Forbidden',
        message: `The operator may not write in this namespace: ${message}. Grant its ServiceAccount the rights of the Helm chart here.`,
      }
    default:
      return { reason: 'Pending', message: `The key is not issued yet: ${message}. The operator tries again by itself.` }
  }
}

function waiting({ storeAvailable, namespaceLimit }: Observed): Outcome {
  if (namespaceLimit !== undefined) return { reason: 'Pending', message: 'The key is issued when the namespace has room for it.' }
  return storeAvailable
    ? { reason: 'Pending', message: 'The key is being issued.' }
    : { reason: 'WaitingForStore', message: 'Redis does not answer, so no key is issued. The operator continues as soon as Redis answers.' }
}
