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
 * Account that it succeeds. NameUsed: they are those of another Account. Missing: it had books, and they are gone. Foreign: another
 * installation has accepted it. Unreadable: a newer operator wrote them.
 */
export type Claim = 'Owned' | 'Open' | 'Inherit' | 'NameUsed' | 'Missing' | 'Foreign' | 'Unreadable'

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
}

export function claimOf(account: Account, { installation, book, isUnreadable, isDamaged }: ClaimFacts): Claim {
  const uid = uidOf(account)
  const reopen = account.metadata.annotations?.[REOPEN_ANNOTATION]
  const begins = reopen === `new-${uid}`
  const mark = markOf(account)
  if (!begins && isForeign(mark, installation)) return 'Foreign'
  if (isUnreadable) return 'Unreadable'
  if (book !== undefined) return claimOn(book, uid, [mark?.uid, reopen])
  const isFresh = mark === undefined && !isDamaged
  return isFresh || begins ? 'Open' : 'Missing'
}

function isForeign(mark: Mark | undefined, installation: string): boolean {
  return mark !== undefined && mark.installation !== installation
}

/** @param succeeds uids that the Account may succeed */
function claimOn({ owner }: AccountBook, uid: string, succeeds: readonly (string | undefined)[]): Claim {
  if (owner === uid) return 'Owned'
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
