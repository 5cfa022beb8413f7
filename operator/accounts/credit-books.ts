/**
 * The books of Credits: every Credit that was ever booked, by its name, with account and amount. Durable and never deleted, so no Credit counts
 * twice and none is lost, whatever happens to its object. Only durable entries count.
 */
import type { Level } from '../loop/level.ts'
import { ClaimedShards, type ClaimingLeader } from '../shards/claimed-shards.ts'
import type { CreditEntry } from '../shards/credit-entry.ts'
import type { SecretShardsDeps } from '../shards/secret-shards.ts'
import { CREDITS_SET } from '../shards/sets.ts'
import { CreditIndex } from './credit-index.ts'

export interface CreditBooksDeps extends SecretShardsDeps {
  readonly leader: ClaimingLeader
  /** Whether gateways were told of Credits that the books do not have: then an absent Secret is lost. Default: no. */
  readonly lacksEntries?: () => boolean
}

export class CreditBooks extends ClaimedShards<CreditEntry> {
  readonly #index = new CreditIndex()
  readonly #changeListeners: Array<(account: string) => void> = []

  /**
   * A claim covers absent Secrets too: the first Credit in one of them may be the last write of a former leader, and no conflict would show it.
   * All exist once there is a Credit, so one that is absent may have been lost.
   */
  constructor(deps: CreditBooksDeps) {
    super({ ...CREDITS_SET, ...deps, groupOf: ({ account }) => account, isClaimedWhole: true })
  }

  /** The durable entry of a Credit. Reads its block, about 0.1 ms. */
  entryOf(id: string): CreditEntry | undefined {
    return this.#index.has(id) ? this.get(id) : undefined
  }

  /** Whether a Credit is in the books, durably. */
  has(id: string): boolean {
    return this.#index.has(id)
  }

  get count(): number {
    return this.#index.size
  }

  /** How many Credits this process knew before it knew that this one is in the books. */
  orderOf(id: string): number | undefined {
    return this.#index.placeOf(id)
  }

  /** Adds an entry, unless the books have one of this id. Listeners receive the result. @throws ZodError for an entry that no reader could read */
  book(entry: CreditEntry, level: Level): void {
    if (!this.has(entry.id) && this.state(entry.id) === 'Durable') this.commit(entry, level)
  }

  /** Sum of all Credits of an account, micro-units. */
  sumOf(account: string): bigint {
    return this.#index.sumOf(account)
  }

  /** Sum of its Credits above 0, micro-units. */
  grossOf(account: string): bigint {
    return this.#index.grossOf(account)
  }

  /** Whether Credits may be missing: a Secret, or an entry in it, cannot be read. */
  get isIncomplete(): boolean {
    return this.unreadable().next().done !== true
  }

  /** Calls a listener with the name of each account whose sum has changed; it must only remember. */
  onChanged(listener: (account: string) => void): void {
    this.#changeListeners.push(listener)
  }

  protected override changed(ids: Iterable<string>): void {
    const accounts = new Set<string>()
    for (const id of ids) {
      const entry = this.get(id)
      if (entry) for (const account of this.#index.put(id, entry.account, entry.micros)) accounts.add(account)
    }
    for (const account of accounts) for (const listener of this.#changeListeners) listener(account)
  }
}
