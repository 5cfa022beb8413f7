/** The observed state of a Credit: the input of `nextStep` and `statusOf`. Plain data. */
import type { Credit } from '#api/credit.ts'
import type { CreditEntry } from '../../shards/credit-entry.ts'

/**
 * State of the books of the account that a Credit names. Open: they accept the Credit. Unclaimed: an Account of the name exists, and has no books
 * yet. Absent: no Account of the name ever had books. OfAnother: they belong to another Account than `accountRef.uid` says. Unreadable: a newer
 * operator wrote them, or they are damaged.
 */
export type BooksState = 'Open' | 'Unclaimed' | 'Absent' | 'OfAnother' | 'Unreadable'

/** Why the last write of the entry was refused. */
export interface BookRefusal {
  readonly message: string
  /** Whether the Secret of the entry has no room for it. */
  readonly isFull: boolean
  /** ms until the next try, above 0. */
  readonly retryInMs: number
}

export interface Observed {
  readonly credit: Credit
  /** What the manifest asks for. */
  readonly wanted: CreditEntry
  /** The durable entry that the books have under the name of the Credit. */
  readonly booked: CreditEntry | undefined
  /** Whether an entry of the name is on its way into the books. */
  readonly isBooking: boolean
  /** Whether the books may have an entry of the name that cannot be read: another build wrote it, or its Secret is damaged. */
  readonly isUnreadable: boolean
  readonly books: BooksState
  readonly refusal: BookRefusal | undefined
  /** Whether the record of the account has the sum of its Credits, or the account has no record. */
  readonly isPublished: boolean
  readonly storeAvailable: boolean
  /** ms since 1970. */
  readonly now: number
}
