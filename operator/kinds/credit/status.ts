/** Derives the status of a Credit. Pure. No message has an amount: Events repeat some of them. */
import { CREDIT_CONDITIONS, type CreditCondition } from '#api/account-conditions.ts'
import { conditionList, findCondition } from '#api/condition-list.ts'
import type { CreditStatus } from '#api/credit.ts'
import type { CreditEntry } from '../../shards/credit-entry.ts'
import type { Observed } from './observed.ts'

type Booked = Omit<Extract<CreditCondition, { type: 'Booked' }>, 'type'>

export function statusOf(observed: Observed): CreditStatus {
  const { credit, now } = observed
  const generation = credit.metadata.generation ?? 0
  return {
    observedGeneration: generation,
    conditions: conditionList(CREDIT_CONDITIONS, [{ type: 'Booked', ...bookedOf(observed) }], {
      previous: credit.status?.conditions,
      generation,
      nowMs: now,
    }),
  }
}

/** Whether the outcome can change: for a Credit that is in the books, or whose name is, it cannot. */
export function isUndecided(observed: Observed): boolean {
  const { reason } = bookedOf(observed)
  return reason !== 'Booked' && reason !== 'IdUsed'
}

function bookedOf(observed: Observed): Booked {
  const { booked, wanted, credit } = observed
  if (booked === undefined) return missingBooks(observed) ?? refused(observed)
  if (!isSame(booked, wanted)) return { reason: 'IdUsed', message: ID_USED }
  const isShown = findCondition(credit.status?.conditions, 'Booked')?.status === 'True'
  if (!observed.isPublished && !isShown)
    return { reason: 'Pending', message: 'The Credit is in the books. Gateways count it once the record of the account has reached them.' }
  return { reason: 'Booked', message: 'The Credit is in the books, and counts once and for ever.' }
}

/** Type, time and reference do not count: a payment service that sends an event again may fill them in differently. */
function isSame(booked: CreditEntry, wanted: CreditEntry): boolean {
  return booked.account === wanted.account && booked.micros === wanted.micros
}

const ID_USED =
  'The books have the name of this Credit for another account or another amount, and a name counts once. This Credit does not count. Create another one with a name of its own.'

const UNREADABLE =
  'The books of this Credit cannot be read: their Secret hg-credits-* is damaged or lost, or a newer version of Headgate wrote it. Restore the Secret, or update the operator.'

function missingBooks({ books, isUnreadable, wanted: { account } }: Observed): Booked | undefined {
  if (isUnreadable) return { reason: 'Pending', message: UNREADABLE }
  switch (books) {
    case 'Unclaimed':
      return {
        reason: 'Pending',
        message: `The Credit is booked once the Account ${account} is accepted. Its conditions say what is missing.`,
      }
    case 'Absent':
      return {
        reason: 'AccountNotFound',
        message: `No account has had the name ${account}, so nothing is booked. Create the Account; the Credit is booked then.`,
      }
    case 'OfAnother':
      return {
        reason: 'AccountNotFound',
        message: `The books of the name ${account} belong to another Account than the one with the uid in spec.accountRef. Nothing is booked, unless that Account owns them again.`,
      }
    case 'Unreadable':
      return {
        reason: 'Pending',
        message: `The books of account ${account} cannot be read. The conditions of the Account name the remedy.`,
      }
    case 'Open':
      return undefined
  }
}

function refused({ refusal }: Observed): Booked {
  if (refusal === undefined) return { reason: 'Pending', message: 'The Credit is being booked.' }
  const { isFull, message } = refusal
  return {
    reason: isFull ? 'BooksFull' : 'Pending',
    message: `The Credit does not count: the books could not be written (${message}). The operator tries again by itself.`,
  }
}
