/** Reads the movements of the balance of one account out of the Secrets, on any replica. */
import type { AccountSpend } from '#contract/ledger/account-spend.ts'
import type { KubePort } from '#kube/port.ts'
import type { CreditEntry } from '../shards/credit-entry.ts'
import { BALANCES_SET, CREDITS_SET } from '../shards/sets.ts'
import { SecretReader } from './secret-reader.ts'
import type { AccountUsage, UsageReader } from './usage-reader.ts'

/** What the Secrets know of the balance of one account. */
export interface AccountLedger {
  readonly book: AccountSpend
  readonly credits: readonly CreditEntry[]
  readonly usage: AccountUsage
}

interface Scan {
  readonly accounts: Set<string>
  /** The Credits of these accounts. */
  readonly found: Promise<readonly CreditEntry[]>
}

export interface LedgerReaderDeps {
  readonly kube: Pick<KubePort, 'get'>
  readonly namespace: string
  readonly usage: Pick<UsageReader, 'read'>
}

export class LedgerReader {
  readonly #secrets: SecretReader
  readonly #usage: Pick<UsageReader, 'read'>
  /** The scan of the Credits that runs: one at a time, since it decodes the Credits of all accounts. */
  #running: Promise<unknown> = Promise.resolve()
  /** The scan that begins after it, for all who wait. */
  #next: Scan | undefined

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
    this.#next ??= this.#scanLater()
    this.#next.accounts.add(account)
    return (await this.#next.found).filter((credit) => credit.account === account)
  }

  #scanLater(): Scan {
    const accounts = new Set<string>()
    const found = this.#running.then(() => {
      this.#next = undefined // who comes now needs a younger scan
      return this.#secrets.all(CREDITS_SET, (credit) => accounts.has(credit.account))
    })
    this.#running = found.catch(() => undefined)
    return { accounts, found }
  }
}
