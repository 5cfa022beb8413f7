/**
 * The state machine of a Credit: derives the next step from the observed state. Pure. The order is the order of the promises: the entry is
 * durable before its amount is published, and published before the status says Booked. A Credit that is in the books is never read again
 * except to write its status.
 */
import { sameStatus } from '#api/condition-list.ts'
import { firstAnswer, type StepBase, type Wait } from '../../loop/reconciler.ts'
import type { Level } from '../../loop/level.ts'
import type { Observed } from './observed.ts'
import { isUndecided, statusOf } from './status.ts'

/** Time after which books that cannot be read are asked again, ms. */
const UNREADABLE_RETRY_MS = 30_000

export interface CreditStep extends StepBase {
  readonly do: 'book' | 'write-status'
}

type Answer = CreditStep | Wait | undefined

export function nextStep(observed: Observed): Answer {
  return firstAnswer(CHECKS, observed)
}

export function reportStep(observed: Observed): CreditStep | undefined {
  return sameStatus(statusOf(observed), observed.credit.status) ? undefined : { do: 'write-status', level: 'background' }
}

const CHECKS: ReadonlyArray<(observed: Observed) => Answer> = [book, awaitBooks, awaitRecord, reportStep, awaitEvents]

/** Adds the entry to the books, once. */
function book({ booked, isBooking, isUnreadable, books, refusal, wanted }: Observed): Answer {
  const isDue = booked === undefined && !isBooking && !isUnreadable && books === 'Open' && refusal === undefined
  return isDue ? { do: 'book', level: levelOf(wanted) } : undefined
}

/** Money that is taken back restricts. A top-up is a change of an account that exists, so it does not wait behind new objects. */
export function levelOf({ micros }: Pick<Observed['wanted'], 'micros'>): Level {
  return micros < 0 ? 'urgent' : 'change'
}

function awaitBooks({ isBooking }: Observed): Answer {
  return isBooking ? { do: 'wait' } : undefined
}

/** Delays the status, so that one write reports the result. Without the store it may take long, so the status says so. */
function awaitRecord(observed: Observed): Answer {
  return observed.booked !== undefined && observed.storeAvailable && isUndecided(observed) ? { do: 'wait' } : undefined
}

/** Waits for books of the account, for its record, for a Secret that can be read, or for the next try of a refused write. */
function awaitEvents(observed: Observed): Answer {
  if (!isUndecided(observed)) return undefined
  const { refusal, isUnreadable, books } = observed
  if (refusal !== undefined) return { do: 'wait', forMs: refusal.retryInMs }
  return isUnreadable || books === 'Unreadable' ? { do: 'wait', forMs: UNREADABLE_RETRY_MS } : { do: 'wait' }
}
