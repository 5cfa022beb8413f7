/** The specification of a ServedModel's reconcile: derives the next step from the observed state. Pure. */
import { sameStatus, findCondition } from '#api/condition-list.ts'
import type { Level } from '../../loop/level.ts'
import { type Check, firstAnswer, type Wait } from '../../loop/reconciler.ts'
import type { CredentialRef } from './backend-credential.ts'
import type { Observed, ObservedModel } from './observed.ts'

/** Longest wait for gateways and Redis before the status says that an answer is missing, ms. */
const STATUS_WAIT_MS = 1_000

export type ModelStep =
  /** Removes the record and the mounted entries of a deleted object. */
  | { readonly do: 'forget'; readonly level: Level }
  | { readonly do: 'read-credential'; readonly level: Level; readonly credential: CredentialRef }
  /** Hands the record to the projection, which writes it in the background. */
  | { readonly do: 'project'; readonly level: Level }
  /** Hands record and credentials to the mounted Secrets, which are written in the background. */
  | { readonly do: 'mount'; readonly level: Level }
  | { readonly do: 'write-status'; readonly level: Level }

type Answer = ModelStep | Wait | undefined

/** The checks in order. The first answer decides. */
const CHECKS: ReadonlyArray<Check<Observed, ModelStep>> = [
  forgetDeleted,
  ...[readFirst, project, mount, readAgain, awaitGateways].map(ofPresent),
  reportStatus,
  ofPresent(awaitAcknowledgement),
]

export function nextStep(observed: Observed): Answer {
  return firstAnswer(CHECKS, observed)
}

export function reportStatus(observed: Observed): ModelStep | undefined {
  if (observed.state === 'Deleted' || sameStatus(observed.status, observed.model.status)) return undefined
  return { do: 'write-status', level: 'background' }
}

function ofPresent(check: (observed: ObservedModel) => Answer): Check<Observed, ModelStep> {
  return (observed) => (observed.state === 'Present' ? check(observed) : undefined)
}

function forgetDeleted(observed: Observed): Answer {
  return observed.state === 'Deleted' ? { do: 'forget', level: 'urgent' } : undefined
}

/** Only the Secret says which hosts may receive the credential, so the Secret is read before the record is projected. */
function readFirst({ unread }: ObservedModel): Answer {
  return unread && { do: 'read-credential', level: 'change', credential: unread }
}

function project({ text, desired, projection }: ObservedModel): Answer {
  if (projection.isWanted || (projection.isKept && desired.keepsMounted)) return undefined
  if (text === undefined && !projection.hadRecord) return undefined
  const level = projection.isRestricted ? 'urgent' : projection.hadRecord ? 'change' : 'create'
  return { do: 'project', level }
}

/** The mounted credential of an unreadable Secret stays: the credential may still be valid. */
function mount({ desired, mounted }: ObservedModel): Answer {
  return mounted.isCurrent || desired.keepsMounted ? undefined : { do: 'mount', level: 'change' }
}

function readAgain({ dueCredential }: ObservedModel): Answer {
  return dueCredential && { do: 'read-credential', level: 'background', credential: dueCredential }
}

/** Gateways acknowledge within milliseconds. A short wait saves a status that would be outdated at once. */
function awaitGateways(observed: ObservedModel): Answer {
  const { text, projection } = observed
  const { confirmation, revision, sinceMs, storeAvailable } = projection
  if (text === undefined || !storeAvailable || sinceMs >= STATUS_WAIT_MS) return undefined
  const isOpen = revision === undefined || confirmation?.state === 'Waiting'
  return isOpen && dependsOnGateways(observed) ? { do: 'wait', forMs: STATUS_WAIT_MS - sinceMs } : undefined
}

/** A model that is Ready stays Ready, and one that is not accepted is not Ready, whatever the gateways have. */
function dependsOnGateways({ model, status }: ObservedModel): boolean {
  const isReady = findCondition(model.status?.conditions, 'Ready')?.status === 'True'
  return !isReady && findCondition(status.conditions, 'Ready')?.reason !== 'NotAccepted'
}

/** An acknowledgement enqueues the object, if the status depends on it. */
function awaitAcknowledgement({ status, projection: { confirmation } }: ObservedModel): Answer {
  const isOpen = confirmation?.state === 'Waiting' || confirmation?.state === 'Unknown'
  return isOpen && findCondition(status.conditions, 'Ready')?.reason === 'NotProgrammed' ? { do: 'wait' } : undefined
}
