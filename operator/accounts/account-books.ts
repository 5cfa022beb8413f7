/**
 * The books of accounts: whose each name is, and what it has spent. Durable, by name, and never deleted: a name that has spent is not given away
 * silently.
 */
import { hash } from 'node:crypto'
import type { Level } from '../loop/level.ts'
import type { AccountSpend } from '#contract/ledger/account-spend.ts'
import { type AccountBook, isSameSpend, mergeSpend } from '../shards/account-book.ts'
import { ClaimedShards, type ClaimingLeader } from '../shards/claimed-shards.ts'
import type { SecretShardsDeps } from '../shards/secret-shards.ts'
import { BALANCES_SET } from '../shards/sets.ts'

/** Length of a ledger name, hexadecimal digits: 128 bits. */
const LEDGER_NAME = 32
const LEDGER_NAME_TEXT = /^[0-9a-f]{32}$/

export interface AccountBooksDeps extends SecretShardsDeps {
  readonly leader: ClaimingLeader
  /** Identity of this installation; known from the start on. */
  readonly installation: () => string
}

export class AccountBooks extends ClaimedShards<AccountBook> {
  readonly #installation: () => string
  /** Names of accounts by the name in the ledger. */
  readonly #names = new Map<string, string>()
  readonly #changeListeners: Array<(name: string) => void> = []

  constructor(deps: AccountBooksDeps) {
    super({ ...BALANCES_SET, ...deps })
    this.#installation = deps.installation
  }

  /** Opens books, or gives them to another owner. Their spend stays, and that of `entry` is merged into it. */
  override commit(entry: AccountBook, level: Level): void {
    const known = this.newest(entry.name)
    super.commit(known === undefined ? entry : { ...entry, ...mergeSpend(entry, known) }, level)
  }

  /**
   * Adds what another source knows of the spend of an account with books: at once in memory, durably within seconds.
   * @returns whether the books did not know all of it
   */
  addSpend(name: string, spend: AccountSpend): boolean {
    const known = this.newest(name)
    if (known === undefined) return false
    const merged = mergeSpend(known, spend)
    if (isSameSpend(merged, known)) return false
    this.commitLater({ ...known, ...merged })
    return true
  }

  /** Name of an account in the ledger, 32 hexadecimal digits. Another installation has another one. */
  ledgerName(name: string): string {
    return hash('sha256', `headgate-account-1\n${this.#installation()}\n${name}`, 'hex').slice(0, LEDGER_NAME)
  }

  /** @returns the name of the account that has books under this name in the ledger */
  nameIn(ledgerName: string): string | undefined {
    return this.#names.get(ledgerName)
  }

  /** Whether an account may have this name in the ledger: also one whose books cannot be read, since the ledger may have the only copy of its spend. */
  mayHave(ledgerName: string): boolean {
    return this.#names.has(ledgerName) || (this.mayLackEntries && LEDGER_NAME_TEXT.test(ledgerName))
  }

  /** Names in the ledger of all accounts with books. */
  ledgerNames(): Iterable<string> {
    return this.#names.keys()
  }

  /** Calls a listener with the name of books that may have changed; it must only remember. */
  onChanged(listener: (name: string) => void): void {
    this.#changeListeners.push(listener)
  }

  protected override changed(names: Iterable<string>): void {
    for (const name of names) {
      if (this.newest(name) === undefined) continue
      this.#names.set(this.ledgerName(name), name)
      for (const listener of this.#changeListeners) listener(name)
    }
  }
}
