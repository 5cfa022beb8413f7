/** Runs a schedule against several processes with the balance of one account, and checks what is promised about money. */
import type { LedgerBalance } from '#contract/ledger/account-spend.ts'
import { halvesOf } from '#contract/values/signed-micros.ts'
import type { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { Hold, LimitSubject, Verdict } from '../../gateway/limits/ledger.ts'
import { atMost, equal, sum } from './ledger-model.ts'
import { type CallFate, LedgerWorld, need, subject, usage } from './ledger-world.ts'

/** One step of a schedule. Numbers choose among the present items, modulo their count. */
export type BalanceStep =
  | { readonly do: 'reserve'; readonly process: number; readonly micros: number }
  | { readonly do: 'settle'; readonly pick: number; readonly percent: number }
  | { readonly do: 'release'; readonly pick: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'credit'; readonly micros: number }
  | { readonly do: 'fail'; readonly fate: CallFate; readonly calls: number }
  | { readonly do: 'let go' }
  | { readonly do: 'crash'; readonly process: number }
  /** The operator takes the spend into its books. */
  | { readonly do: 'read' }
  /** The operator closes a period, hours after the last one. A request may settle after it has named the new period. */
  | { readonly do: 'fold'; readonly pick: number }
  /** The store loses all data, and every process learns it. */
  | { readonly do: 'empty' }

interface Process {
  readonly ledger: LeaseLedger
  readonly name: string
  isAlive: boolean
}

interface Admission {
  readonly process: Process
  readonly hold: Hold
  readonly micros: number
  state: 'open' | 'settled' | 'released'
  cost: number
}

const ACCOUNT = 'account-1'
const FIRST_CREDITS = 5_000n
/** A ledger that knows nothing of an account grants nothing for this long, ms: every process has reported by then. */
const READY_MS = 6_000
const FOLD_MS = 2 * 3_600_000

export class BalanceModel {
  readonly world = new LedgerWorld()
  readonly #processes: readonly Process[]
  readonly #admissions: Admission[] = []
  #credits = FIRST_CREDITS
  #subject: LimitSubject = accountWith(FIRST_CREDITS)
  #fates: CallFate[] = []
  #emptiedAt: number | undefined
  /** The books of the operator; `#spent` is by period and process. */
  #openFrom = 0
  #closedSpend = 0n
  #spent = new Map<string, number>()

  constructor(processes: number) {
    this.world.live = processes
    this.#processes = Array.from({ length: processes }, (_, at) => ({ ledger: this.world.process(), name: `p${at + 1}`, isAlive: true }))
    this.world.store.fate = ({ process }) => this.#fate(process)
    this.#merge(true)
  }

  get admitted(): number {
    return this.#admissions.length
  }

  async run(steps: readonly BalanceStep[]): Promise<void> {
    for (const step of steps) {
      await this.#step(step)
      this.#tend()
    }
    await this.#rest()
  }

  async #step(step: BalanceStep): Promise<void> {
    if (step.do === 'reserve') return await this.#reserve(step)
    if (step.do === 'settle') return this.#settle(step.pick, step.percent)
    if (step.do === 'release') return this.#release(step.pick)
    if (step.do === 'advance') return await this.world.advance(step.ms)
    if (step.do === 'credit') return this.#credit(step.micros)
    return await this.#stepOfFailure(step)
  }

  async #stepOfFailure(step: BalanceStep): Promise<void> {
    if (step.do === 'fail') this.#fates.push(...Array.from({ length: step.calls }, () => step.fate))
    if (step.do === 'let go') await this.#letGo()
    if (step.do === 'crash') this.#crash(step.process)
    if (step.do === 'read') this.#read()
    if (step.do === 'fold') await this.#fold(step.pick)
    if (step.do === 'empty') await this.#empty()
  }

  async #reserve({ process: pick, micros }: Extract<BalanceStep, { do: 'reserve' }>): Promise<void> {
    const process = this.#processes[pick % this.#processes.length]
    if (!process?.isAlive) return
    const verdicts: Verdict[] = []
    const asked = process.ledger.reserve([this.#subject], need({ holdByUnit: { Currency: micros, Tokens: 0 } }))
    const pending = Promise.resolve(asked).then((verdict) => void verdicts.push(verdict))
    for (let ms = 0; ms < 60 && verdicts.length === 0; ms += 1) await this.world.advance(ms === 0 ? 0 : 1)
    await pending
    for (const verdict of verdicts) if (verdict.outcome === 'held') this.#admit({ process, hold: verdict, micros, state: 'open', cost: 0 })
  }

  #admit(admission: Admission): void {
    this.#admissions.push(admission)
    const alive = this.#admissions.filter(({ process, state }) => process.isAlive && state !== 'released')
    const charged = alive.map(({ state, micros, cost }) => (state === 'open' ? micros : cost))
    atMost(sum(charged), Number(this.#credits), 'spent and held of a balance')
  }

  #settle(pick: number, percent: number): void {
    const admission = this.#open(pick)
    if (!admission) return
    admission.state = 'settled'
    admission.cost = Math.floor((admission.micros * percent) / 100)
    admission.process.ledger.settle(admission.hold, usage({ costMicros: admission.cost }))
  }

  #release(pick: number): void {
    const admission = this.#open(pick)
    if (!admission) return
    admission.state = 'released'
    admission.process.ledger.release(admission.hold)
  }

  /** Every process reads the changed record, whether or not it uses the account. */
  #credit(micros: number): void {
    this.#credits += BigInt(micros)
    this.#subject = accountWith(this.#credits)
    for (const { ledger } of this.#processes) ledger.changed(ACCOUNT)
  }

  #crash(pick: number): void {
    const alive = this.#processes.filter(({ isAlive }) => isAlive)
    const process = alive[pick % alive.length]
    if (alive.length > 1 && process) process.isAlive = false
  }

  async #empty(): Promise<void> {
    this.world.store.wipe(ACCOUNT)
    this.#emptiedAt = this.world.clock.now()
    for (const { ledger } of this.#processes) ledger.reportAgain()
    await this.world.advance(1)
  }

  /** What the operator does in time: an emptied store may grant again. @returns whether it begins to */
  #tend(): boolean {
    if (this.#emptiedAt === undefined || this.world.clock.now() - this.#emptiedAt < READY_MS) return false
    this.#emptiedAt = undefined
    this.#merge(true)
    return true
  }

  #read(): void {
    const [state] = this.world.memory.readBalances([ACCOUNT])
    if (state === undefined || state === 'absent') return
    for (const [field, spent] of state.spent) {
      if (periodOf(field) >= this.#openFrom) this.#spent.set(field, Math.max(this.#spent.get(field) ?? 0, spent))
    }
  }

  async #fold(pick: number): Promise<void> {
    this.#fates = []
    await this.#letGo()
    await this.world.advance(10_000) // every process has reported what it settled in the period before the last one
    if (this.#tend()) return // the period of the key has changed: the next change is hours away
    const [state] = this.world.memory.readBalances([ACCOUNT])
    if (state === undefined || state === 'absent' || state.openFrom !== state.period - 1) return
    this.world.memory.raisePeriods([{ name: ACCOUNT, period: state.period + 1 }])
    this.#settle(pick, 100)
    this.#read()
    const closed = [...this.#spent].filter(([field]) => periodOf(field) < state.period)
    for (const [field, spent] of closed) {
      this.#closedSpend += BigInt(spent)
      this.#spent.delete(field)
    }
    this.#openFrom = state.period
    this.#merge(false)
    this.world.clock.skip(FOLD_MS)
  }

  #merge(isReady: boolean): void {
    const books = { openFrom: this.#openFrom, closedSpend: this.#closedSpend, spent: this.#spent }
    this.world.memory.mergeBalances([{ name: ACCOUNT, books, isReady }])
  }

  async #letGo(): Promise<void> {
    for (const release of this.world.store.hanging.splice(0)) release()
    await this.world.advance(1)
  }

  #fate(name: string): CallFate {
    if (!this.#processes.find((process) => process.name === name)?.isAlive) return 'never arrives'
    return this.#fates.shift() ?? 'works'
  }

  #open(pick: number): Admission | undefined {
    const open = this.#admissions.filter(({ state, process }) => state === 'open' && process.isAlive)
    return open[pick % open.length]
  }

  /** Ends all failures and requests, and lets time pass. Nothing is held then, and every cost counts once. */
  async #rest(): Promise<void> {
    this.#fates = []
    await this.#letGo()
    await this.world.advance(10_000)
    this.#tend()
    while (this.#open(0)) this.#settle(0, 50)
    await this.world.advance(20_000)
    const dead = this.#processes.filter(({ isAlive }) => !isAlive)
    const { holders } = this.#balance()
    this.world.memory.freeHolds(dead.map(({ name: process }) => ({ name: ACCOUNT, process, held: holders.get(process) ?? 0 })))
    const state = this.#balance()
    equal(sum([...state.holders.values()]), 0, 'holds at rest')
    const counted = Number(state.closedSpend) + sum([...state.spent.values()])
    const settled = this.#admissions.filter(({ state: end }) => end === 'settled')
    atMost(
      sum(settled.filter(({ process }) => process.isAlive).map(({ cost }) => cost)),
      counted,
      'spend of living processes is never lost',
    )
    atMost(counted, sum(settled.map(({ cost }) => cost)), 'no spend counts twice')
  }

  #balance(): LedgerBalance {
    const [state] = this.world.memory.readBalances([ACCOUNT])
    if (state === undefined || state === 'absent') throw new Error('the balance is absent')
    return state
  }
}

function accountWith(credits: bigint): LimitSubject {
  return subject({ uid: ACCOUNT, whose: 'account', balance: { credits: halvesOf(credits) } })
}

function periodOf(field: string): number {
  return Number(field.slice(0, field.indexOf(':')))
}
