/** One gateway process of a CreditWorld, as far as balances go: it holds, settles into the last known period, and reports absolute numbers. */
import type { PublishedAccount } from './credit-counts.ts'
import type { CreditWorld } from './credit-world.ts'

/** A running request. */
export interface CreditHold {
  readonly ledger: string
  readonly amount: number
}

/** What a process knows of the balance of one account. */
interface OwnBalance {
  period: number
  credits: bigint
  /** Spend by period, which the process keeps until the period is closed. */
  readonly spent: Map<number, number>
  /** The same, as the store has counted it. */
  readonly acknowledged: Map<number, number>
}

export class CreditGateway {
  readonly name: string
  /** Records by uid of the account, as this gateway knows them. */
  records: ReadonlyMap<string, PublishedAccount> = new Map()
  readonly holds: CreditHold[] = []
  isAlive = true
  /** Frozen: it neither settles nor reports, and sends no heartbeat. Cut off: it does not reach the store. */
  isFrozen = false
  isCutOff = false
  /** Whether the answer of the next call is lost. */
  losesReply = false
  readonly #world: CreditWorld
  readonly #balances = new Map<string, OwnBalance>()

  constructor(world: CreditWorld, name: string) {
    this.#world = world
    this.name = name
  }

  get canReport(): boolean {
    return this.isAlive && !this.isFrozen && !this.isCutOff
  }

  /** Learns the newest records. */
  sync(): void {
    if (this.isAlive && !this.isFrozen) this.records = new Map(this.#world.records)
  }

  /** A request of a key whose account has this uid. @returns whether it is admitted */
  admit(uid: string, amount: number): boolean {
    const record = this.records.get(uid)
    if (!this.canReport || record?.state !== 'Active') return false
    const own = this.#open(record.ledger)
    own.credits = record.credits
    if (this.#call(record.ledger, amount) !== true) return false
    this.holds.push({ ledger: record.ledger, amount })
    this.#world.granted(record)
    return true
  }

  /** A running request ends. @param cost at most what it holds */
  settle(hold: CreditHold, cost: number): void {
    if (!this.isAlive || this.isFrozen) return
    this.holds.splice(this.holds.indexOf(hold), 1)
    const { spent, period } = this.#open(hold.ledger)
    spent.set(period, (spent.get(period) ?? 0) + cost)
    this.#world.settled(hold.ledger, cost)
  }

  /** Reports all it knows, as a process does that holds or has spent something. */
  report(): void {
    if (this.canReport) for (const ledger of this.#balances.keys()) this.#call(ledger, 0)
  }

  /** What it holds of an account. */
  heldOf(ledger: string): number {
    return this.holds.reduce((sum, hold) => sum + (hold.ledger === ledger ? hold.amount : 0), 0)
  }

  /** Spend of open periods by account, of which `unacknowledged` was not counted by the store, as far as the process knows. */
  *spend(): IterableIterator<{ readonly ledger: string; readonly all: number; readonly unacknowledged: number }> {
    for (const [ledger, { spent, acknowledged }] of this.#balances) {
      const [all, known] = [spent, acknowledged].map((some) => [...some.values()].reduce((sum, amount) => sum + amount, 0))
      yield { ledger, all: all ?? 0, unacknowledged: (all ?? 0) - (known ?? 0) }
    }
  }

  /** The store has lost what it counted: a process that dies before its next report takes its spend with it. */
  storeLost(): void {
    for (const { acknowledged } of this.#balances.values()) acknowledged.clear()
  }

  /** The process ends without another report. */
  kill(): void {
    this.isAlive = false
    this.holds.length = 0
  }

  /** @returns whether the need was granted; undefined without an answer */
  #call(ledger: string, need: number): boolean | undefined {
    const own = this.#open(ledger)
    const held = this.heldOf(ledger)
    const { period, credits, spent } = own
    const answer = this.#world.store.call({ ledger, process: this.name, period, held, spent, credits, need })
    if (this.losesReply) {
      this.losesReply = false
      return undefined
    }
    own.period = answer.period
    const from = Math.max(answer.openFrom ?? 0, answer.period - 1)
    for (const [at, amount] of spent) if (at >= from) own.acknowledged.set(at, amount)
    for (const at of [...spent.keys()].filter((one) => one < (answer.openFrom ?? 0))) this.#close(ledger, at)
    return answer.isGranted
  }

  #close(ledger: string, period: number): void {
    const { spent, acknowledged } = this.#open(ledger)
    this.#world.mayLose(ledger, (spent.get(period) ?? 0) - (acknowledged.get(period) ?? 0))
    spent.delete(period)
    acknowledged.delete(period)
  }

  #open(ledger: string): OwnBalance {
    const known = this.#balances.get(ledger)
    if (known) return known
    const own: OwnBalance = { period: 0, credits: 0n, spent: new Map(), acknowledged: new Map() }
    this.#balances.set(ledger, own)
    return own
  }
}
