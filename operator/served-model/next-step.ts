/** The specification of a ServedModel's reconcile: from what is observed to the next step. Pure. */
import { sameStatus } from '../api/same-status.ts'
import { findCondition } from '../api/condition-list.ts'
import type { Level } from '../loop/level.ts'
import { type Check, firstAnswer, type Wait } from '../loop/reconciler.ts'
import type { CredentialRef } from './backend-credential.ts'
import type { Observed, ObservedModel } from './observed.ts'

/** Longest wait for gateways and Redis before the status says that they have not answered, ms. */
const STATUS_WAIT_MS = 1_000

/** One thing to do for a ServedModel. */
export type ModelStep =
  /** Takes record and mounted entries of a deleted object away. */
  | { readonly do: 'forget'; readonly level: Level }
  /** Reads one Secret. */
  | { readonly do: 'read-credential'; readonly level: Level; readonly credential: CredentialRef }
  /** Hands the record to the projection, which writes it in the background. */
  | { readonly do: 'project'; readonly level: Level }
  /** Hands record and credentials to the Secrets that gateways mount, which are written in the background. */
  | { readonly do: 'mount'; readonly level: Level }
  /** Has the gateways' acknowledgement enqueue this object. */
  | { readonly do: 'expect-acknowledgement'; readonly level: Level }
  | { readonly do: 'write-status'; readonly level: Level }

type Answer = ModelStep | Wait | undefined

/** In this order; the first answer wins. */
const CHECKS: ReadonlyArray<Check<Observed, ModelStep>> = [
  forgetDeleted,
  ...[readFirst, project, mount, expectAcknowledgement, readAgain, awaitGateways].map(ofPresent),
  reportStatus,
]

export function nextStep(observed: Observed): Answer {
  return firstAnswer(CHECKS, observed)
}

/** @returns the step that writes the status, if it has changed */
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

/** What may be sent where is not known before a Secret has been read. */
function readFirst({ unread }: ObservedModel): Answer {
  return unread && { do: 'read-credential', level: 'change', credential: unread }
}

function project({ text, desired, projection }: ObservedModel): Answer {
  if (projection.isWanted || (projection.isKept && desired.keepsMounted)) return undefined
  if (text === undefined && !projection.hadRecord) return undefined
  const level = projection.isRestricted ? 'urgent' : projection.hadRecord ? 'change' : 'create'
  return { do: 'project', level }
}

/** What an unreadable Secret held is kept: its credential may still be the right one. */
function mount({ desired, mounted }: ObservedModel): Answer {
  return mounted.isCurrent || desired.keepsMounted ? undefined : { do: 'mount', level: 'change' }
}

function expectAcknowledgement({ projection: { revision, confirmation, isExpected } }: ObservedModel): Answer {
  const isOpen = confirmation?.state === 'Waiting' || confirmation?.state === 'Unknown'
  return revision !== undefined && isOpen && !isExpected ? { do: 'expect-acknowledgement', level: 'change' } : undefined
}

function readAgain({ dueCredential }: ObservedModel): Answer {
  return dueCredential && { do: 'read-credential', level: 'background', credential: dueCredential }
}

/** Gateways acknowledge within milliseconds: waiting for them saves a status that would be wrong at once. */
function awaitGateways({ model, text, projection }: ObservedModel): Answer {
  const { confirmation, revision, sinceMs, storeAvailable } = projection
  if (text === undefined || !storeAvailable || sinceMs >= STATUS_WAIT_MS) return undefined
  const isOpen = revision === undefined || confirmation?.state === 'Waiting'
  const isReady = findCondition(model.status?.conditions, 'Ready')?.status === 'True'
  return isOpen && !isReady ? { do: 'wait', forMs: STATUS_WAIT_MS - sinceMs } : undefined
}
