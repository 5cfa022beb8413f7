/** Reads the movements of the balance of one account out of the Secrets, on any replica. */
import type { KubePort } from '#kube/port.ts'
import type { BookedSpend } from '../shards/account-book.ts'
import type { CreditEntry } from '../shards/credit-entry.ts'
import { BALANCES_SET, CREDITS_SET } from '../shards/sets.ts'
import { SecretReader } from './secret-reader.ts'
import type { AccountUsage, UsageReader } from './usage-reader.ts'

/** What the Secrets know of the balance of one account. */
export interface AccountLedger {
  readonly book: BookedSpend
  readonly credits: readonly CreditEntry[]
  readonly usage: AccountUsage
}

export interface LedgerReaderDeps {
  readonly kube: Pick<KubePort, 'get'>
  readonly namespace: string
  readonly usage: Pick<UsageReader, 'read'>
}

export class LedgerReader {
  readonly #secrets: SecretReader
  readonly #usage: Pick<UsageReader, 'read'>
  /** The last scan of the Credits: one at a time, since it decodes the Credits of all accounts. */
  #scan: Promise<unknown> = Promise.resolve()

  constructor({ usage, ...deps }: LedgerReaderDeps) {
    this.#secrets = new SecretReader(deps)
    this.#usage = usage
  }

  /**
   * @returns undefined for a name without books
   * @throws KubeError if a Secret cannot be read; EntriesUnreadable if a sum would lack entries
   */
  async read(account: string): Promise<AccountLedger | undefined> {
    const { entry: book, doubt } = await this.#secrets.entry(BALANCES_SET, account)
    if (book !== undefined) return { book, credits: await this.#creditsOf(account), usage: await this.#usage.read(account) }
    if (doubt !== undefined) throw doubt
    return undefined
  }

  async #creditsOf(account: string): Promise<readonly CreditEntry[]> {
    const scan = this.#scan.then(() => this.#secrets.all(CREDITS_SET, (credit) => credit.account === account))
    this.#scan = scan.catch(() => undefined)
    return await scan
  }
}
