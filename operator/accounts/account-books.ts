/** The books of accounts: whose each name is. Durable, by name, and never deleted: a name that has spent is not given away silently. */
import { hash } from 'node:crypto'
import type { Secret } from '#kube/resources.ts'
import type { Leadership } from '../operator-deps.ts'
import { type AccountBook } from '../shards/account-book.ts'
import { SecretShards, type SecretShardsDeps } from '../shards/secret-shards.ts'
import { BALANCES_SET } from '../shards/sets.ts'

/** Length of a ledger name, hexadecimal digits: 128 bits. */
const LEDGER_NAME = 32

export interface AccountBooksDeps extends SecretShardsDeps {
  readonly leader: Pick<Leadership, 'fence' | 'raiseFence' | 'onFenced'>
  /** Identity of this installation; known from the start on. */
  readonly installation: () => string
}

export class AccountBooks extends SecretShards<AccountBook> {
  readonly #deps: AccountBooksDeps
  /** Names of accounts by the name in the ledger. */
  readonly #names = new Map<string, string>()

  constructor(deps: AccountBooksDeps) {
    const { fence, onFenced } = deps.leader
    super({ ...BALANCES_SET, ...deps, claim: { fence, onFenced } })
    this.#deps = deps
  }

  /**
   * Reads the books and claims them. A higher fencing token is left from a Lease that was deleted, or a newer leader exists; then raising the
   * token fails.
   * @throws KubeError if they cannot be read or claimed
   */
  override async load(): Promise<readonly Secret[]> {
    const others = await super.load()
    if (this.fence > this.#deps.leader.fence()) await this.#deps.leader.raiseFence(this.fence)
    await this.claim()
    return others
  }

  /** Name of an account in the ledger, 32 hexadecimal digits. Another installation has another one. */
  ledgerName(name: string): string {
    return hash('sha256', `headgate-account-1\n${this.#deps.installation()}\n${name}`, 'hex').slice(0, LEDGER_NAME)
  }

  /** @returns the name of the account that has books under this name in the ledger */
  nameIn(ledgerName: string): string | undefined {
    return this.#names.get(ledgerName)
  }

  /** Names in the ledger of all accounts with books. */
  ledgerNames(): Iterable<string> {
    return this.#names.keys()
  }

  protected override changed(names: Iterable<string>): void {
    for (const name of names) if (this.newest(name) !== undefined) this.#names.set(this.ledgerName(name), name)
  }
}
