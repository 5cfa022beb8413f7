/** Processes that share one ledger on a clock that stands still until a test moves it. */
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { BudgetSpec, Hold, LimitSubject, Need, Refused, SettledUsage, Verdict } from '../../gateway/limits/ledger.ts'
import type { LedgerStore } from '../../gateway/limits/ledger.ts'
import type { CallEnd } from '../../gateway/limits/subject-calls.ts'
import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { LEDGER_TIMING, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { Clock } from '#platform/clock.ts'
import { ManualClock } from './manual-clock.ts'

export type CallFate = 'works' | 'reply lost' | 'never arrives' | 'hangs'

export type StoreEvent =
  | { readonly do: 'call'; readonly atMs: number; readonly call: LedgerCall; readonly reply: LedgerReply }
  | { readonly do: 'seed'; readonly subject: string; readonly seed: string; readonly checkpoints: Checkpoints }
  | { readonly do: 'reap'; readonly subject: string; readonly process: string }
  | { readonly do: 'wipe'; readonly subject: string }
  /** The store has the state after these events alone. */
  | { readonly do: 'go back'; readonly past: readonly StoreEvent[] }

type Checkpoints = ReadonlyArray<readonly [field: string, spent: number]>

export class FallibleStore implements LedgerStore {
  memory: MemoryLedgerStore
  readonly calls: LedgerCall[] = []
  /** Every call that has reached the store, for a repetition on another store. */
  readonly journal: StoreEvent[] = []
  fate: (call: LedgerCall) => CallFate = () => 'works'
  /** Replies of calls that hang; a test lets them go. */
  readonly hanging: Array<() => void> = []
  isPingGood = true
  /** Runs before the store counts a call; a throw replaces the answer of the store. */
  before: ((call: LedgerCall) => void) | undefined

  readonly #now: () => number
  readonly #timing: LedgerTiming
  /** The events that have led to the present state. */
  #past: StoreEvent[] = []
  /** Time of an event that is played again. */
  #replayedMs: number | undefined

  constructor(now: () => number, timing: LedgerTiming) {
    this.#now = now
    this.#timing = timing
    this.memory = this.#empty()
  }

  seed(subject: string, seed: string, checkpoints: Checkpoints = []): void {
    this.memory.seed(subject, seed, checkpoints)
    this.#note({ do: 'seed', subject, seed, checkpoints })
  }

  reap(subject: string, process: string): void {
    this.memory.reap(subject, process)
    this.#note({ do: 'reap', subject, process })
  }

  wipe(subject: string): void {
    this.memory.drop(subject)
    this.#note({ do: 'wipe', subject })
  }

  /** @returns a function that takes the store back to its present state */
  save(): () => void {
    const past = [...this.#past]
    return () => {
      this.memory = this.#empty()
      this.#past = [...past]
      for (const event of past) this.#replay(event)
      this.#replayedMs = undefined
      this.journal.push({ do: 'go back', past })
    }
  }

  /** Every call and every ping fails from now on. */
  fail(fate: CallFate): void {
    this.fate = () => fate
    this.isPingGood = false
  }

  recover(): void {
    this.fate = () => 'works'
    this.isPingGood = true
  }

  async call(call: LedgerCall): Promise<LedgerReply> {
    this.calls.push(call)
    this.before?.(call)
    const fate = this.fate(call)
    if (fate === 'never arrives') throw new Error('connection lost')
    const sent = structuredClone(call)
    const reply = this.memory.answer(sent)
    this.#note({ do: 'call', atMs: this.#now(), call: sent, reply })
    if (fate === 'reply lost') throw new Error('connection lost')
    if (fate === 'hangs') await new Promise<void>((resolve) => this.hanging.push(resolve))
    return reply
  }

  async ping(): Promise<void> {
    if (!this.isPingGood) throw new Error('no answer')
  }

  #note(event: StoreEvent): void {
    this.journal.push(event)
    this.#past.push(event)
  }

  #empty(): MemoryLedgerStore {
    return new MemoryLedgerStore(() => this.#replayedMs ?? this.#now(), this.#timing)
  }

  #replay(event: StoreEvent): void {
    if (event.do === 'seed') this.memory.seed(event.subject, event.seed, event.checkpoints)
    if (event.do === 'reap') this.memory.reap(event.subject, event.process)
    if (event.do === 'wipe') this.memory.drop(event.subject)
    if (event.do !== 'call') return
    this.#replayedMs = event.atMs
    this.memory.answer(event.call)
  }
}

interface ProcessOptions {
  readonly store?: LedgerStore
  /** Error of its wall clock, ms. */
  readonly skewMs?: number
  readonly onEnd?: (how: CallEnd) => void
}

export class LedgerWorld {
  readonly clock: ManualClock
  readonly timing: LedgerTiming
  readonly store: FallibleStore
  live = 1
  #processes = 0

  constructor(timing: LedgerTiming = LEDGER_TIMING, startMs = Date.UTC(2026, 0, 14, 12, 0, 0, 400)) {
    this.clock = new ManualClock(startMs)
    this.timing = timing
    this.store = new FallibleStore(() => this.clock.now(), timing)
  }

  get memory(): MemoryLedgerStore {
    return this.store.memory
  }

  /** Starts a process. */
  process({ store = this.store, skewMs = 0, onEnd }: ProcessOptions = {}): LeaseLedger {
    this.#processes += 1
    const { clock, timing } = this
    const skewed: Clock = {
      now: () => clock.now() + skewMs,
      monotonic: () => clock.monotonic(),
      after: (delayMs, callback) => clock.after(delayMs, callback),
    }
    const process = `p${this.#processes}`
    return new LeaseLedger({ store, clock: skewed, process, live: () => this.live, timing, waitMs: 50, ...(onEnd && { onEnd }) })
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms)
  }
}

export function held(verdict: Verdict): Hold {
  if (verdict.outcome !== 'held') throw new Error(`not held: ${JSON.stringify(verdict)}`)
  return verdict
}

export function refused(verdict: Verdict): Refused {
  if (verdict.outcome !== 'refused') throw new Error(`not refused: ${JSON.stringify(verdict)}`)
  return verdict
}

/** A world with one process and a seed for the budgets of `key-1`. */
export function oneProcess(): { readonly world: LedgerWorld; readonly ledger: LeaseLedger } {
  const world = new LedgerWorld()
  world.memory.seed('key-1', 'seed-1')
  return { world, ledger: world.process() }
}

export function subject(overrides: Partial<LimitSubject> = {}): LimitSubject {
  return { uid: 'key-1', whose: 'key', limits: {}, budgets: [], onStoreUnavailable: 'FailClosed', ...overrides }
}

export function budget(overrides: Partial<BudgetSpec> = {}): BudgetSpec {
  return { name: 'month', unit: 'Currency', window: 'Month', timeZone: 'UTC', amount: 1_000_000, onExceeded: 'Block', ...overrides }
}

export function need(overrides: Partial<Need> = {}): Need {
  return { tokens: 0, holdByUnit: { Currency: 0, Tokens: 0 }, ...overrides }
}

export function usage(overrides: Partial<SettledUsage> = {}): SettledUsage {
  return { inputTokens: 0, outputTokens: 0, costMicros: 0, ...overrides }
}
