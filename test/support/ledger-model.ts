/** Runs a schedule against several processes with one ledger, and checks the promises of the limits. */
import type { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { Hold, LimitSubject, Verdict } from '../../gateway/limits/ledger.ts'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { budget, type CallFate, LedgerWorld, need, subject, usage } from './ledger-world.ts'

export type { StoreEvent } from './ledger-world.ts'

/** One step of a schedule. Numbers choose among the present items, modulo their count. */
export type LedgerStep =
  | { readonly do: 'reserve'; readonly process: number; readonly tokens: number; readonly micros: number }
  | { readonly do: 'settle'; readonly pick: number; readonly percent: number }
  | { readonly do: 'release'; readonly pick: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'fail'; readonly fate: CallFate; readonly calls: number }
  | { readonly do: 'let go' }
  | { readonly do: 'crash'; readonly process: number }
  | { readonly do: 'limit'; readonly requests: number; readonly tokens: number }
  | { readonly do: 'wipe' }
  | { readonly do: 'save' }
  | { readonly do: 'go back' }
  | { readonly do: 'checkpoint' }
  | { readonly do: 'cut off'; readonly process: number }
  | { readonly do: 'reach' }

interface Admission {
  readonly process: Process
  readonly hold: Hold
  readonly atMs: number
  readonly tokens: number
  readonly micros: number
  state: 'open' | 'settled' | 'released'
  usedTokens: number
  cost: number
  /** Whether its permit was given to others, since the store had not heard of the process for too long, or lost what it had heard. */
  hasLostPermit?: boolean
}

interface Process {
  readonly ledger: LeaseLedger
  readonly name: string
  isAlive: boolean
  isCutOff: boolean
  /** Time of its last call that reached the store. */
  heardAt: number
  /** Whether the store has gone back since that call. */
  isForgotten: boolean
}

export const MODEL_TIMING: LedgerTiming = { windowMs: 6_000, slotMs: 100, leaseMs: 100 }
const TIMING = MODEL_TIMING
const DAY_MS = 86_400_000
const PERMITS = 5
const AMOUNT = 2_000
const UID = 'key-1'
/** A process without the store for longer than this may finish running requests above the count of permits, ms. */
const CUT_OFF_MS = 10_000

export class LedgerModel {
  readonly world = new LedgerWorld(TIMING, Date.UTC(2026, 0, 31, 23, 59, 40))
  readonly #processes: Process[]
  readonly #admissions: Admission[] = []
  #limits = { requestsPerMinute: 10, tokensPerMinute: 500 }
  #fates: CallFate[] = []
  #wipes = 0
  #wipedAt = -Infinity
  #goBack: () => void
  /** Whether the store has gone back while a process was cut off: budgets then hold only what others know. */
  #isOld = false
  /** Spend since the store went back first: another state may replace it. */
  #spentSince = 0
  /** Highest spend of each window that the operator has read. */
  readonly #known = new Map<string, number>()
  /** Until this time admissions of other processes may be unknown to a wiped store, ms. */
  #wipedUntil = -Infinity

  constructor(processes: number) {
    this.world.live = processes
    this.#processes = Array.from({ length: processes }, (_, at) => ({
      ledger: this.world.process(),
      name: `p${at + 1}`,
      isAlive: true,
      isCutOff: false,
      heardAt: this.world.clock.now(),
      isForgotten: false,
    }))
    this.world.store.seed(UID, 'seed-0')
    this.#goBack = this.world.store.save()
    this.world.store.fate = (call) => this.#fate(call.process)
  }

  get admitted(): number {
    return this.#admissions.length
  }

  async run(steps: readonly LedgerStep[]): Promise<void> {
    for (const step of steps) {
      await this.#step(step)
      this.#checkBooks()
    }
    await this.#rest()
  }

  async #step(step: LedgerStep): Promise<void> {
    switch (step.do) {
      case 'reserve':
        return await this.#reserve(step)
      case 'settle':
        return this.#settle(step.pick, step.percent)
      case 'release':
        return this.#release(step.pick)
      case 'advance':
        return await this.world.advance(step.ms)
      case 'fail':
        return void this.#fates.push(...Array.from({ length: step.calls }, () => step.fate))
      case 'let go':
        return await this.#letGo()
      case 'crash':
        return this.#crash(step.process)
      case 'limit':
        return this.#limit({ requestsPerMinute: step.requests, tokensPerMinute: step.tokens })
      case 'wipe':
        return await this.#wipe()
      default:
        return await this.#stepOfOldState(step)
    }
  }

  async #stepOfOldState(step: LedgerStep): Promise<void> {
    if (step.do === 'save') this.#goBack = this.world.store.save()
    if (step.do === 'go back') return await this.#toOldState()
    if (step.do === 'checkpoint') this.#checkpoint()
    if (step.do === 'cut off') for (const process of this.#processes.slice(step.process, step.process + 1)) process.isCutOff = true
    if (step.do === 'reach') for (const process of this.#processes) this.#reach(process)
  }

  async #toOldState(): Promise<void> {
    this.#goBack()
    this.#isOld = true
    this.#wipedAt = this.world.clock.now()
    this.#wipedUntil = this.world.clock.now() + 2 * TIMING.windowMs
    for (const process of this.#processes) {
      if (process.isCutOff) process.isForgotten = true
      else process.ledger.reportAgain() // its connection was lost
    }
    await this.world.advance(1)
  }

  /** Reads the spend and restarts lost budgets, as the operator does. */
  #checkpoint(): void {
    for (const [field, spent] of this.world.memory.checkpoint(UID)) this.#known.set(field, Math.max(this.#known.get(field) ?? 0, spent))
    this.#wipes += 1
    this.world.store.seed(UID, `seed-${1_000 * this.#wipes}`, [...this.#known])
  }

  #reach(process: Process): void {
    if (!process.isCutOff) return
    process.isCutOff = false
    if (this.#isOld) this.#wipedAt = this.world.clock.now() // until now the process did not know, and windows may have ended
    process.ledger.reportAgain()
  }

  async #reserve({ process: pick, tokens, micros }: Extract<LedgerStep, { do: 'reserve' }>): Promise<void> {
    const process = this.#processes[pick % this.#processes.length]
    if (!process?.isAlive) return
    const held = Math.min(tokens, this.#limits.tokensPerMinute)
    const demand = need({ tokens, holdByUnit: { Currency: micros, Tokens: 0 } })
    const verdicts: Verdict[] = []
    const pending = Promise.resolve(process.ledger.reserve([this.#subject()], demand)).then((verdict) => void verdicts.push(verdict))
    for (let ms = 0; ms < 60 && verdicts.length === 0; ms += 1) await this.world.advance(ms === 0 ? 0 : 1)
    atMost(1, verdicts.length, 'requests without a verdict after 60 ms')
    await pending
    for (const verdict of verdicts) if (verdict.outcome === 'held') this.#admit({ process, hold: verdict, tokens: held, micros })
  }

  #admit(admitted: Pick<Admission, 'process' | 'hold' | 'tokens' | 'micros'>): void {
    const atMs = this.world.clock.now()
    this.#admissions.push({ ...admitted, atMs, state: 'open', usedTokens: 0, cost: 0 })
    if (atMs >= this.#wipedUntil) this.#checkRates(atMs, admitted.tokens > 0)
    if (!this.#isOld) this.#checkBudget(atMs)
  }

  /** Lets every process read the changed record, whether or not it uses the key. */
  #limit(limits: { requestsPerMinute: number; tokensPerMinute: number }): void {
    this.#limits = limits
    for (const { ledger } of this.#processes) ledger.changed(UID)
  }

  #settle(pick: number, percent: number): void {
    const admission = this.#open(pick)
    if (!admission) return
    admission.state = 'settled'
    admission.usedTokens = Math.floor((admission.tokens * percent) / 100)
    admission.cost = Math.floor((admission.micros * percent) / 100)
    if (this.#isOld) this.#spentSince += admission.cost
    admission.process.ledger.settle(admission.hold, usage({ inputTokens: admission.usedTokens, costMicros: admission.cost }))
  }

  #release(pick: number): void {
    const admission = this.#open(pick)
    if (!admission) return
    admission.state = 'released'
    admission.process.ledger.release(admission.hold)
  }

  /** Kills a process: its calls no longer arrive, and its running requests have ended. */
  #crash(pick: number): void {
    const alive = this.#processes.filter(({ isAlive }) => isAlive)
    const process = alive[pick % alive.length]
    if (alive.length > 1 && process) process.isAlive = false
  }

  /** Empties the store, and notifies every process, as a new epoch of the projection does. */
  async #wipe(): Promise<void> {
    this.#wipes += 1
    this.#wipedAt = this.world.clock.now()
    this.world.store.wipe(UID)
    this.world.store.seed(UID, `seed-${this.#wipes}`)
    this.#wipedUntil = this.world.clock.now() + 2 * TIMING.windowMs
    for (const { ledger } of this.#processes) ledger.reportAgain()
    await this.world.advance(1)
  }

  async #letGo(): Promise<void> {
    for (const release of this.world.store.hanging.splice(0)) release()
    await this.world.advance(1)
  }

  #fate(name: string): CallFate {
    const process = this.#processes.find((other) => other.name === name)
    if (!process?.isAlive || process.isCutOff) return 'never arrives'
    const fate = this.#fates.shift() ?? 'works'
    if (fate !== 'never arrives') this.#hear(process)
    return fate
  }

  /** docs/limits.md: a pod that was away finishes the calls that it runs, above the count of permits. */
  #hear(process: Process): void {
    const now = this.world.clock.now()
    if (now - process.heardAt >= CUT_OFF_MS || process.isForgotten) {
      for (const admission of this.#admissions) if (admission.process === process) admission.hasLostPermit = true
    }
    process.heardAt = now
    process.isForgotten = false
  }

  #open(pick: number): Admission | undefined {
    const open = this.#admissions.filter(({ state, process }) => state === 'open' && process.isAlive)
    return open[pick % open.length]
  }

  #subject(): LimitSubject {
    const limits = { ...this.#limits, maxConcurrentRequests: PERMITS }
    return subject({ uid: UID, limits, budgets: [budget({ name: 'day', window: 'Day', amount: AMOUNT })] })
  }

  #checkRates(nowMs: number, usesTokens: boolean): void {
    const counted = this.#admissions.filter(({ atMs, state }) => atMs > nowMs - TIMING.windowMs && state !== 'released')
    atMost(counted.length, this.#limits.requestsPerMinute, 'requests in a rolling window')
    const tokens = counted.map(({ state, tokens: held, usedTokens }) => (state === 'open' ? held : Math.min(held, usedTokens)))
    if (usesTokens) atMost(sum(tokens), this.#limits.tokensPerMinute, 'tokens held or settled in a rolling window')
  }

  #checkBudget(nowMs: number): void {
    const today = this.#admissions.filter(({ atMs, state }) => dayOf(atMs) === dayOf(nowMs) && state !== 'released')
    const charged = today.map(({ state, micros, cost }) => (state === 'open' ? micros : Math.min(micros, cost)))
    atMost(sum(charged), AMOUNT, 'spent and held of a budget')
  }

  #checkBooks(): void {
    const { rates } = this.world.memory.booked(UID)
    for (const window of [rates.r, rates.t]) {
      atMost(0, window.total, 'a total is never negative')
      equal(window.total, sum([...window.slots.values()]), 'a total is the sum of its slots')
    }
    const now = this.world.clock.now()
    const running = this.#admissions.filter(
      ({ state, process, hasLostPermit }) => state === 'open' && process.isAlive && !hasLostPermit && now - process.heardAt < CUT_OFF_MS,
    )
    if (now >= this.#wipedUntil) atMost(running.length, PERMITS, 'running requests')
  }

  /** Ends all failures and requests, and lets time pass. Asserts that nothing is left, and that every amount counts once. */
  async #rest(): Promise<void> {
    this.#fates = []
    await this.#letGo()
    if (this.#known.size > 0) this.#checkpoint()
    for (const process of this.#processes) this.#reach(process)
    await this.world.advance(4_000)
    while (this.#open(0)) this.#settle(0, 50)
    await this.world.advance(20_000 + 2 * TIMING.windowMs)
    const dead = this.#processes.filter(({ isAlive }) => !isAlive)
    for (const { name } of dead) this.world.store.reap(UID, name)
    const reader = this.#processes.find(({ isAlive }) => isAlive)
    const snapshot = await this.#read(reader)
    equal(snapshot.requests?.remaining, this.#limits.requestsPerMinute, 'requests at rest')
    equal(snapshot.tokens?.remaining, this.#limits.tokensPerMinute, 'tokens at rest')
    equal(snapshot.concurrency?.used, 0, 'permits at rest')
    for (const shown of snapshot.budgets) equal(shown.held, 0, 'holds at rest')
    this.#checkSpend()
  }

  async #read(process: Process | undefined): Promise<Awaited<ReturnType<LeaseLedger['snapshot']>>> {
    if (!process) throw new Error('no process is alive')
    const reading = process.ledger.snapshot(this.#subject())
    await this.world.advance(1)
    return await reading
  }

  #checkSpend(): void {
    const spent = Object.fromEntries(this.world.memory.checkpoint(UID))
    const days = new Set(this.#admissions.map(({ atMs }) => dayOf(atMs)))
    for (const day of days) {
      const settled = this.#admissions.filter(({ atMs, state }) => dayOf(atMs) === day && state === 'settled')
      const ofLiving = sum(settled.filter(({ process }) => process.isAlive).map(({ cost }) => cost))
      const ofAll = sum(settled.map(({ cost }) => cost))
      const inStore = spent[`day:Currency:Day:${day * DAY_MS}`] ?? 0
      const isKnown = (day + 1) * DAY_MS > this.#wipedAt // no process keeps the spend of an ended window; checkpoints do
      if (isKnown) atMost(ofLiving - this.#spentSince, inStore, 'spend of living processes is never lost')
      atMost(inStore, ofAll, 'no spend counts twice')
    }
    for (const [field, known] of this.#known) atMost(known, spent[field] ?? 0, 'spend below a checkpoint is never lost')
  }
}

export function atMost(seen: number, limit: number, what: string): void {
  if (seen > limit) throw new Error(`${what}: ${seen} is above ${limit}`)
}

export function equal(seen: number | undefined, expected: number, what: string): void {
  if (seen !== expected) throw new Error(`${what}: ${seen} instead of ${expected}`)
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function dayOf(atMs: number): number {
  return Math.floor(atMs / DAY_MS)
}
