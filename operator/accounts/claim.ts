/** Decides whose the books of an account are: order and rules of decision 34. Pure. */
import type { Account } from '#api/account.ts'
import { uidOf } from '#kube/port.ts'
import type { AccountBook } from '../shards/account-book.ts'

/** `<installation>/<uid>`: the operator writes it on each Account that it has accepted. A restored copy carries it. */
export const MARK_ANNOTATION = 'headgate.dev/books'
/** uid of the Account whose books go on, or `new-<own uid>` to begin books that are missing. An administrator writes it. */
export const REOPEN_ANNOTATION = 'headgate.dev/reopen-books'

/**
 * What the books say about an Account. Owned: they are its own. Open: there are none, and it never had any. Inherit: they are those of the
 * Account that it succeeds. NameUsed: they are those of another Account. Missing: it had books, and they are gone. Damaged: a part of the
 * books could not be read, so they may lack spend or Credits. Foreign: another installation has accepted it. Unreadable: a newer operator
 * wrote them.
 */
export type Claim = 'Owned' | 'Open' | 'Inherit' | 'NameUsed' | 'Missing' | 'Damaged' | 'Foreign' | 'Unreadable'

const ACCEPTED: readonly Claim[] = ['Owned', 'Open', 'Inherit']

interface Mark {
  readonly installation: string
  readonly uid: string
}

export interface ClaimFacts {
  readonly installation: string
  readonly book: AccountBook | undefined
  readonly isUnreadable: boolean
  /** A part of the books was damaged, and the entry of this name may be lost. */
  readonly isDamaged: boolean
  /** The entry is there, and its sums may be too low, because another part of the books was damaged. */
  readonly isBroken: boolean
}

export function claimOf(account: Account, facts: ClaimFacts): Claim {
  const { installation, book, isUnreadable } = facts
  if (!beginsBooks(account) && isForeign(markOf(account), installation)) return 'Foreign'
  if (isUnreadable) return 'Unreadable'
  return book === undefined ? claimWithout(account, facts) : claimOn(book, account, facts)
}

/** Whether the books are those of the Account, or are about to be. */
export function isAccepted(claim: Claim): boolean {
  return ACCEPTED.includes(claim)
}

/** Whether an administrator lets the Account begin books that are missing, or go on with what is left of them. */
export function beginsBooks(account: Account): boolean {
  return account.metadata.annotations?.[REOPEN_ANNOTATION] === `new-${uidOf(account)}`
}

function isForeign(mark: Mark | undefined, installation: string): boolean {
  return mark !== undefined && mark.installation !== installation
}

function claimWithout(account: Account, { isDamaged }: ClaimFacts): Claim {
  const isFresh = markOf(account) === undefined && !isDamaged
  if (isFresh || beginsBooks(account)) return 'Open'
  return isDamaged ? 'Damaged' : 'Missing'
}

function claimOn({ owner }: AccountBook, account: Account, { isBroken }: ClaimFacts): Claim {
  if (owner === uidOf(account)) return isBroken && !beginsBooks(account) ? 'Damaged' : 'Owned'
  const succeeds = [markOf(account)?.uid, account.metadata.annotations?.[REOPEN_ANNOTATION]]
  return succeeds.includes(owner) ? 'Inherit' : 'NameUsed'
}

/** The mark that an accepted Account carries. */
export function markFor(installation: string, account: Account): string {
  return `${installation}/${uidOf(account)}`
}

export function isMarked(installation: string, account: Account): boolean {
  return account.metadata.annotations?.[MARK_ANNOTATION] === markFor(installation, account)
}

/** @returns undefined without a mark. A mark without a slash is of no installation */
function markOf({ metadata }: Account): Mark | undefined {
  const mark = metadata.annotations?.[MARK_ANNOTATION]
  if (mark === undefined) return undefined
  const slash = mark.indexOf('/')
  return { installation: mark.slice(0, Math.max(0, slash)), uid: mark.slice(slash + 1) }
}
