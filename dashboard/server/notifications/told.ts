/** What the people of accounts were told, as it is kept: by all replicas together, since each mail is for one of them to send. */
import type { ToldState } from './decide.ts'

/** Who reads the mails of an account. */
export interface Audience {
  /** Verified addresses. */
  readonly addresses: readonly string[]
  /** Since when the account has the first of them, ms since 1970. */
  readonly sinceMs: number
}

export interface StoredState {
  /** Raised by each change. */
  readonly revision: number
  readonly state: ToldState
}

export interface ToldChange {
  readonly account: string
  /** The one that was read; undefined: there was none. */
  readonly revision: number | undefined
  readonly state: ToldState
  readonly told: readonly string[]
  readonly forgotten: readonly string[]
  /** Sealed mails, for the outbox. */
  readonly mails: readonly string[]
}

export interface Told {
  /** undefined: nobody with a verified address belongs to the account. */
  audience(account: string): Promise<Audience | undefined>
  state(account: string): Promise<StoredState | undefined>
  /** @returns those of the ids that were told */
  among(account: string, ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Ids of the account that begin with `prefix`, and when they were told, ms since 1970. */
  beginningWith(account: string, prefix: string): Promise<ReadonlyMap<string, number>>
  /**
   * Stores a change and its mails: all or nothing.
   * @returns false, and nothing is stored, if another replica has changed the account since
   */
  store(change: ToldChange): Promise<boolean>
  /** Accounts with people for which nothing is stored. */
  withoutState(): Promise<readonly string[]>
  /** Deletes what belongs to accounts without people, and ids that begin with `prefix` after a time. */
  sweep(prefix: string, olderThanMs: number): Promise<void>
}
