/** Counts what was paid and spent in a world of prepaid accounts, and what its failures excuse. */
import assert from 'node:assert/strict'
import type { CreditEntry } from '../../operator/shards/credit-entry.ts'
import type { ShardCodec } from '../../operator/shards/shard-codec.ts'
import type { CreditOperator } from './credit-operator.ts'

/** What gateways know of an account. */
export interface PublishedAccount {
  readonly uid: string
  readonly name: string
  readonly ledger: string
  readonly credits: bigint
  readonly state: 'Active' | 'Deleted'
}

/** Shards and codec of a set of Secrets; empty: those of production. */
export interface SetCodec<Entry> {
  readonly shards?: number
  readonly codec?: () => ShardCodec<Entry>
}

/** What the failures of a schedule excuse. */
export interface Excuses {
  /** More than the credits may be held. */
  overspend: boolean
  /** Any spend may be lost. */
  spend: boolean
  /** A Credit may be gone if its object is. */
  credits: boolean
}

export abstract class CreditCounts {
  /** The newest leader first. The one before may not know yet that it is deposed. */
  operators: readonly CreditOperator[] = []
  /** Records by uid of the account. */
  readonly records = new Map<string, PublishedAccount>()
  readonly excuses: Excuses = { overspend: false, spend: false, credits: false }
  /** Every manifest of a Credit that was ever created. */
  readonly manifests: CreditEntry[] = []
  /** Credits whose status said Booked. */
  readonly shown = new Map<string, CreditEntry>()
  /** uids of all Accounts that a name has had. */
  readonly uids = new Map<string, string[]>()
  readonly #settled = new Map<string, number>()
  readonly #lost = new Map<string, number>()
  /** Credits in the published sum, by name of the account. */
  readonly #published = new Map<string, ReadonlySet<string>>()
  #fence = 0

  /** The newest leader. */
  get leader(): CreditOperator {
    const [leader] = this.operators
    if (leader === undefined) throw new Error('no operator was started')
    return leader
  }

  /** What running requests hold of an account. @param ledger its name in the ledger */
  abstract holdsOf(ledger: string): number

  /** The part of it that the store can know. */
  knownHoldsOf(ledger: string): number {
    return this.holdsOf(ledger)
  }

  /** Spend of holds that the store could not know. */
  unknownSpendOf(_ledger: string): number {
    return 0
  }

  /** @param ids Credits in the sum */
  publish(operator: CreditOperator, record: PublishedAccount, ids: readonly string[]): void {
    if (!this.#mayWrite(operator)) return
    const former = this.#published.get(record.name) ?? new Set()
    const missing = [...former].filter((id) => !ids.includes(id))
    if (!this.excuses.credits) assert.deepEqual(missing, [], 'the published set of Credits never shrinks')
    this.#published.set(record.name, new Set(ids))
    this.records.set(record.uid, record)
  }

  withdraw(operator: CreditOperator, uid: string): void {
    const record = this.records.get(uid)
    if (record?.state === 'Active' && this.#mayWrite(operator)) this.records.set(uid, { ...record, state: 'Deleted' })
  }

  /** The record of the present Account of a name. */
  recordOf(name: string): PublishedAccount | undefined {
    const uid = this.uids.get(name)?.at(-1)
    return uid === undefined ? undefined : this.records.get(uid)
  }

  isPublished(name: string, sum: bigint): boolean {
    const record = this.recordOf(name)
    return record === undefined || record.credits === sum
  }

  booked(entry: CreditEntry): void {
    this.shown.set(entry.id, entry)
  }

  /** Checks that the credits, as the granting process knows them, pay for all that is spent and held. */
  granted({ ledger, credits: sum }: PublishedAccount): void {
    if (this.excuses.overspend) return
    const { least } = this.spentOf(ledger)
    const [spent, held] = [least - this.unknownSpendOf(ledger), this.knownHoldsOf(ledger)]
    assert.ok(sum >= BigInt(spent + held), `${spent} are spent and ${held} held of ${sum}`)
  }

  settled(ledger: string, cost: number): void {
    this.#settled.set(ledger, (this.#settled.get(ledger) ?? 0) + cost)
  }

  /** Spend that no process can report any more. */
  mayLose(ledger: string, amount: number): void {
    this.#lost.set(ledger, (this.#lost.get(ledger) ?? 0) + amount)
  }

  /** What was really spent of an account, without and with the part that may be lost. */
  spentOf(ledger: string): { readonly least: number; readonly most: number } {
    const most = this.#settled.get(ledger) ?? 0
    return { least: this.excuses.spend ? 0 : Math.max(0, most - (this.#lost.get(ledger) ?? 0)), most }
  }

  #mayWrite(operator: CreditOperator): boolean {
    if (operator.fence >= this.#fence) this.#fence = operator.fence
    else operator.end()
    return operator.fence >= this.#fence
  }
}
