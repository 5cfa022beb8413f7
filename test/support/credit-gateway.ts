/** One gateway process of a CreditWorld, as far as balances go: it holds, settles into a fresh period, and reports absolute numbers. */
import type { PublishedAccount } from './credit-counts.ts'
import type { BalanceAnswer } from './credit-store.ts'
import type { CreditWorld } from './credit-world.ts'

/** A running request. */
export interface CreditHold {
  readonly ledger: string
  readonly amount: number
}

/** What a process knows of the balance of one account. */
interface OwnBalance {
  period: number
  /** When a reply has named the period, monotonic ms. */
  namedMs: number
  /** Spend whose period the next reply names. */
  unplaced: number
  credits: bigint
  /** Spend by period, which the process keeps until the period is closed. */
  readonly spent: Map<number, number>
  /** The same, as the store has counted it. */
  readonly acknowledged: Map<number, number>
  /** The part that has ended when its period was closed already. A process that was cut off does not explain its loss. */
  readonly late: Map<number, number>
}

/** Time for which a reply names the period of spend, ms, as in `gateway/limits/balance-book.ts`. */
const PERIOD_FRESH_MS = 600_000

export class CreditGateway {
  readonly name: string
  /** Records by uid of the account, as this gateway knows them. */
  records: ReadonlyMap<string, PublishedAccount> = new Map()
  readonly holds: CreditHold[] = []
  isAlive = true
  /** When it was last seen to be able to report, monotonic ms. */
  aliveAtMs: number
  /** Whether the answer of the next call is lost. */
  losesReply = false
  #isFrozen = false
  #isCutOff = false
  readonly #world: CreditWorld
  readonly #balances = new Map<string, OwnBalance>()
  /** Accounts that the process has not reported since the store lost its data. */
  readonly #unreported = new Set<string>()
  /** Accounts whose hold nobody else knows until the next report, since the process is or was silent: with the spend that nobody else knows either. */
  readonly #unknown = new Map<string, number>()

  constructor(world: CreditWorld, name: string) {
    this.#world = world
    this.name = name
    this.aliveAtMs = world.clock.monotonic()
  }

  get canReport(): boolean {
    return this.isAlive && !this.isFrozen && !this.isCutOff
  }

  /** It neither settles nor reports, and sends no heartbeat. */
  get isFrozen(): boolean {
    return this.#isFrozen
  }

  set isFrozen(isFrozen: boolean) {
    this.#isFrozen = isFrozen
    if (isFrozen) this.#forget(this.#unreported)
  }

  /** It does not reach the store. */
  get isCutOff(): boolean {
    return this.#isCutOff
  }

  set isCutOff(isCutOff: boolean) {
    this.#isCutOff = isCutOff
    if (isCutOff) this.#forget(this.#unreported)
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
    const own = this.#open(hold.ledger)
    const unknown = this.#unknown.get(hold.ledger)
    if (unknown !== undefined) this.#unknown.set(hold.ledger, unknown + cost)
    own.unplaced += cost
    if (this.#isFresh(own)) this.#place(hold.ledger, own)
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

  /**
   * What it holds of an account, as far as the store can know. docs/money.md: what a pod held that "is frozen or cut off while Redis is emptied, or
   * before the pod has reported again", or for so long that it counts as dead, may be overspent until its next report.
   */
  knownHoldOf(ledger: string): number {
    return this.#unknown.has(ledger) ? 0 : this.heldOf(ledger)
  }

  /** The spend that the store cannot know: of such a hold, or since the last report before the process fell silent. */
  unknownSpendOf(ledger: string): number {
    return this.#unknown.get(ledger) ?? 0
  }

  /** Spend of open periods by account, of which `unacknowledged` was not counted by the store, as far as the process knows. */
  *spend(): IterableIterator<{ readonly ledger: string; readonly all: number; readonly unacknowledged: number }> {
    for (const [ledger, { spent, acknowledged, unplaced }] of this.#balances) {
      const all = unplaced + total(spent)
      yield { ledger, all, unacknowledged: all - total(acknowledged) }
    }
  }

  /**
   * The store has lost what it counted: a process that dies before its next report takes its spend with it. The sum of the books has what was
   * counted in closed periods.
   */
  storeLost(): void {
    for (const [ledger, { acknowledged }] of this.#balances) {
      this.#unreported.add(ledger)
      const from = this.#world.openFrom(ledger)
      for (const at of [...acknowledged.keys()].filter((one) => one >= from)) acknowledged.delete(at)
      if (!this.canReport) this.#unknown.set(ledger, 0) // the world excuses the spend of a silent process
    }
  }

  /** The process ends without another report. */
  kill(): void {
    this.isAlive = false
    this.holds.length = 0
  }

  /** It was silent for so long that its holds are dropped. */
  presumeDead(): void {
    this.#forget(this.#balances.keys())
  }

  /** Until its next report nobody knows what it holds of these accounts, and has spent without an answer of the store, but for what is durable. */
  #forget(ledgers: Iterable<string>): void {
    for (const ledger of ledgers) {
      const { spent, acknowledged, unplaced } = this.#open(ledger)
      const lacking = [...spent].map(([at, amount]) => {
        const known = Math.max(acknowledged.get(at) ?? 0, this.#world.durableSpend(ledger, `${at}:${this.name}`))
        return Math.max(0, amount - known)
      })
      if (!this.#unknown.has(ledger))
        this.#unknown.set(
          ledger,
          lacking.reduce((sum, amount) => sum + amount, unplaced),
        )
    }
  }

  /** @returns whether the need was granted; undefined without an answer */
  #call(ledger: string, need: number): boolean | undefined {
    const own = this.#open(ledger)
    const held = this.heldOf(ledger) + own.unplaced // else the store would lend it to others until it has a period
    const { period, credits, spent } = own
    const answer = this.#world.store.call({ ledger, process: this.name, period, held, spent, credits, need })
    this.#unreported.delete(ledger)
    this.#unknown.delete(ledger)
    if (this.losesReply) {
      this.losesReply = false
      return undefined
    }
    // a store that has lost its data counts also what is reported too late: its merge with the books drops that
    const from = Math.max(answer.openFrom ?? this.#world.openFrom(ledger), answer.period - 1)
    for (const [at, amount] of spent) if (at >= from) own.acknowledged.set(at, amount)
    for (const at of [...spent.keys()].filter((one) => one < (answer.openFrom ?? 0))) this.#close(ledger, at)
    this.#learnPeriod(ledger, own, answer)
    return answer.isGranted
  }

  /** A store that has lost its data may have forgotten its period, and closes none. */
  #learnPeriod(ledger: string, own: OwnBalance, { period, openFrom }: BalanceAnswer): void {
    if (openFrom === undefined && !this.#isFresh(own)) return
    own.period = Math.max(own.period, period)
    own.namedMs = this.#world.clock.monotonic()
    this.#place(ledger, own)
  }

  #place(ledger: string, own: OwnBalance): void {
    const { period, spent, late, unplaced } = own
    own.unplaced = 0
    if (unplaced > 0) add(spent, period, unplaced)
    if (unplaced === 0 || period >= this.#world.openFrom(ledger)) return
    add(late, period, unplaced)
    if (this.#world.reopened.has(ledger)) this.#world.mayLose(ledger, unplaced)
  }

  #isFresh({ namedMs }: OwnBalance): boolean {
    return this.#world.clock.monotonic() - namedMs <= PERIOD_FRESH_MS
  }

  /** Of a process that could not report before its period was closed, what had ended by then may be lost. */
  #close(ledger: string, period: number): void {
    const { spent, acknowledged, late } = this.#open(ledger)
    const [all = 0, counted = 0, after = 0] = [spent, acknowledged, late].map((amounts) => amounts.get(period) ?? 0)
    this.#world.mayLose(ledger, Math.max(0, all - counted - after))
    for (const amounts of [spent, acknowledged, late]) amounts.delete(period)
  }

  #open(ledger: string): OwnBalance {
    const known = this.#balances.get(ledger)
    if (known) return known
    const own: OwnBalance = {
      period: 0,
      namedMs: -Infinity,
      unplaced: 0,
      credits: 0n,
      spent: new Map(),
      acknowledged: new Map(),
      late: new Map(),
    }
    this.#balances.set(ledger, own)
    return own
  }
}

function add(amounts: Map<number, number>, period: number, amount: number): void {
  amounts.set(period, (amounts.get(period) ?? 0) + amount)
}

function total(amounts: ReadonlyMap<number, number>): number {
  return [...amounts.values()].reduce((sum, amount) => sum + amount, 0)
}
