/**
 * The state machine of an Account: derives the next step from the observed state. Pure. The order is the order of the promises: an Account
 * owns the books of its name before it is marked, and is marked before a key of it can spend.
 */
import { isDeepStrictEqual } from 'node:util'
import { sameStatus } from '#api/condition-list.ts'
import { type AccountRecord, decodeAccountRecord } from '#contract/records/account-record.ts'
import { parseSum } from '#contract/values/signed-micros.ts'
import { sharedPolicy, tightensLimits } from '#policy/effective.ts'
import { awaitEvents, awaitGateways, projectStep, publishStep } from '../../accounts/record-state.ts'
import { firstAnswer, type StepBase, type Wait } from '../../loop/reconciler.ts'
import type { Observed, ObservedAccount } from './observed.ts'
import { statusOf } from './status.ts'

/** Time after which a refused change of the books is tried again, ms. */
export const BOOK_RETRY_MS = 10_000
/** Time after which an Account that the cache lacks is read live again, ms. */
export const FIND_AGAIN_MS = 60_000
/** Time after which damaged books are looked up again, ms. */
const REPAIR_RETRY_MS = 10_000

export interface AccountStep extends StepBase {
  readonly do: 'read-live' | 'open-books' | 'mark' | 'publish' | 'project' | 'end' | 'write-status'
}

type Answer = AccountStep | Wait | undefined

export function nextStep(observed: Observed): Answer {
  if (observed.state === 'Present') return firstAnswer(CHECKS, observed)
  return observed.isFoundLive ? { do: 'wait', forMs: FIND_AGAIN_MS } : { do: 'end', level: 'urgent' }
}

export function reportStep(observed: Observed): AccountStep | undefined {
  // another installation writes the status of its own account
  if (observed.state === 'Deleted' || observed.isStale || observed.claim === 'Foreign') return undefined
  if (sameStatus(statusOf(observed), observed.account.status)) return undefined
  return { do: 'write-status', level: 'background' }
}

const CHECKS: ReadonlyArray<(observed: ObservedAccount) => Answer> = [
  ({ isStale }) => (isStale ? { do: 'read-live', level: 'change' } : undefined),
  openBooks,
  mark,
  (observed) => publishStep(observed.record, levelOf(observed)),
  ({ record }) => projectStep(record),
  awaitBooks,
  ({ record }) => awaitGateways(record),
  reportStep,
  awaitRepair,
  ({ record }) => awaitEvents(record),
]

/** Gives the books of the name to the Account, durably. */
function openBooks({ claim, isBooking, bookRefusal }: ObservedAccount): Answer {
  const isDue = (claim === 'Open' || claim === 'Inherit') && !isBooking && bookRefusal === undefined
  return isDue ? { do: 'open-books', level: 'create' } : undefined
}

function mark({ claim, isBooking, isMarked }: ObservedAccount): Answer {
  return claim === 'Owned' && !isBooking && !isMarked ? { do: 'mark', level: 'create' } : undefined
}

function awaitBooks(observed: ObservedAccount): Answer {
  if (observed.isBooking) return { do: 'wait' }
  return observed.bookRefusal === undefined ? undefined : (reportStep(observed) ?? { do: 'wait', forMs: BOOK_RETRY_MS })
}

/** Waits for the parts of damaged books. */
function awaitRepair({ claim }: ObservedAccount): Answer {
  return claim === 'Damaged' ? { do: 'wait', forMs: REPAIR_RETRY_MS } : undefined
}

function levelOf({ former, record: { wanted } }: ObservedAccount): 'urgent' | 'change' | 'create' {
  if (former === undefined) return 'create'
  return wanted === undefined || restricts(former, decodeAccountRecord(wanted)) ? 'urgent' : 'change'
}

/** Whether the wanted record refuses what the former one admits. Another plan may. */
export function restricts(former: AccountRecord, wanted: AccountRecord): boolean {
  if (former.state === 'Active' && wanted.state !== 'Active') return true
  if (former.plan !== wanted.plan || tightensBalance(former.balance, wanted.balance)) return true
  return tightensLimits(sharedPolicy(former, undefined), sharedPolicy(wanted, undefined))
}

/** Whether a balance refuses more: less credit, or the account pays in advance from now on. */
function tightensBalance(former: AccountRecord['balance'], wanted: AccountRecord['balance']): boolean {
  if (wanted?.billing !== 'Prepaid') return false
  return former?.billing !== 'Prepaid' || creditsOf(wanted) < creditsOf(former)
}

function creditsOf({ credits }: NonNullable<AccountRecord['balance']>): bigint {
  return parseSum(credits) ?? 0n
}

/** Whether two records of one account differ in nothing but the amount of the balance. */
export function differInBalanceAlone(former: AccountRecord | undefined, now: AccountRecord | undefined): boolean {
  if (former === undefined || now === undefined) return false
  const rest = (record: AccountRecord) => ({ ...record, revision: 0, balance: record.balance?.billing })
  return isDeepStrictEqual(rest(former), rest(now))
}
