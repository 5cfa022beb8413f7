/** One gateway process of a RealCreditWorld: the real ledger on the real Redis, whose way there a test can cut. */
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { Hold, LedgerStore, Verdict } from '../../gateway/limits/ledger.ts'
import type { PublishedAccount } from './credit-counts.ts'
import { need, usage } from './ledger-world.ts'
import { prepaid } from './loaded-gateway.ts'
import type { RealCreditWorld } from './real-credit-world.ts'

/** Longest wait of a request for the ledger, ms. */
const WAIT_MS = 1_000

/** A running request. */
export interface RealHold {
  readonly ledger: string
  readonly amount: number
  readonly hold: Hold
}

export class RealGateway implements LedgerStore {
  readonly name: string
  readonly holds: RealHold[] = []
  isAlive = true
  /** It does not reach Redis. */
  isCutOff = false
  /** Whether the answer of the next call is lost. */
  losesReply = false
  readonly ledger: LeaseLedger
  /** Records by uid of the account, as this gateway knows them. */
  #records: ReadonlyMap<string, PublishedAccount> = new Map()
  readonly #world: RealCreditWorld
  readonly #settled = new Map<string, number>()
  /** Spend that Redis has counted, by account and period. */
  readonly #counted = new Map<string, Map<number, number>>()

  constructor(world: RealCreditWorld, name: string) {
    this.#world = world
    this.name = name
    const onRefused = (error: Error): void => world.failed(error)
    this.ledger = new LeaseLedger({ store: this, clock: world.clock, process: name, live: () => 2, onRefused })
  }

  get canReport(): boolean {
    return this.isAlive && !this.isCutOff
  }

  /** Learns the newest records. */
  sync(): void {
    if (this.isAlive) this.#records = new Map(this.#world.records)
  }

  /** A request of a key whose account has this uid. @returns whether it is admitted */
  async admit(uid: string, amount: number): Promise<boolean> {
    const record = this.#records.get(uid)
    if (!this.isAlive || record?.state !== 'Active') return false
    const { ledger, credits } = record
    const verdict = await this.#decided(
      this.ledger.reserve([prepaid(ledger, credits)], need({ holdByUnit: { Currency: amount, Tokens: 0 } })),
    )
    if (verdict.outcome !== 'held') return false
    this.holds.push({ ledger, amount, hold: verdict })
    this.#world.admitted += 1
    this.#world.granted(record)
    return true
  }

  /** A running request ends. @param cost at most what it holds */
  settle(hold: RealHold, cost: number): void {
    this.holds.splice(this.holds.indexOf(hold), 1)
    this.#settled.set(hold.ledger, (this.#settled.get(hold.ledger) ?? 0) + cost)
    this.#world.settled(hold.ledger, cost)
    this.ledger.settle(hold.hold, usage({ costMicros: cost }))
  }

  /** A new connection: it may be another server, or the same one without its data. */
  reconnect(): void {
    this.#counted.clear() // a process that dies before its next report takes its spend with it
    if (this.canReport) this.ledger.reportAgain()
  }

  heldOf(ledger: string): number {
    return this.holds.reduce((sum, hold) => sum + (hold.ledger === ledger ? hold.amount : 0), 0)
  }

  /** Its spend by account, and the part that Redis has never counted. */
  *spend(): IterableIterator<{ readonly ledger: string; readonly all: number; readonly uncounted: number }> {
    for (const [ledger, all] of this.#settled) {
      const counted = [...(this.#counted.get(ledger)?.values() ?? [])].reduce((sum, amount) => sum + amount, 0)
      yield { ledger, all, uncounted: all - counted }
    }
  }

  /** The process ends without another report. */
  kill(): void {
    this.isAlive = false
    this.holds.length = 0
  }

  call(call: LedgerCall): Promise<LedgerReply> {
    return this.#world.during(() => this.#call(call))
  }

  async ping(): Promise<void> {
    if (!this.canReport) throw new Error('cut off')
  }

  async #call(call: LedgerCall): Promise<LedgerReply> {
    if (!this.canReport) throw new Error('cut off')
    const reply = await this.#world.ledgerCall(call)
    if ('balance' in reply && reply.balance) this.#count(call, reply.balance.period)
    if (!this.losesReply) return reply
    this.losesReply = false
    throw new Error('cut off')
  }

  #count({ subject, balance }: LedgerCall, period: number): void {
    const counted = this.#counted.get(subject) ?? new Map<number, number>()
    for (const row of balance?.spent ?? []) if (row.period >= period - 1) counted.set(row.period, row.spent)
    this.#counted.set(subject, counted)
  }

  async #decided(asked: Verdict | Promise<Verdict>): Promise<Verdict> {
    let verdict: Verdict | undefined
    void Promise.resolve(asked).then((decided) => (verdict = decided))
    for (let ms = 0; ms < WAIT_MS && verdict === undefined; ms += 50) await this.#world.pass(ms === 0 ? 0 : 50)
    if (verdict === undefined) throw new Error('a request waits for ever')
    return verdict
  }
}
