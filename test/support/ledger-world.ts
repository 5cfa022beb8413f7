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
  | { readonly do: 'seed'; readonly subject: string; readonly seed: string }
  | { readonly do: 'reap'; readonly subject: string; readonly process: string }
  | { readonly do: 'wipe'; readonly subject: string }

export class FallibleStore implements LedgerStore {
  readonly memory: MemoryLedgerStore
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

  constructor(memory: MemoryLedgerStore, now: () => number) {
    this.memory = memory
    this.#now = now
  }

  seed(subject: string, seed: string): void {
    this.memory.seed(subject, seed)
    this.journal.push({ do: 'seed', subject, seed })
  }

  reap(subject: string, process: string): void {
    this.memory.reap(subject, process)
    this.journal.push({ do: 'reap', subject, process })
  }

  wipe(subject: string): void {
    this.memory.drop(subject)
    this.journal.push({ do: 'wipe', subject })
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
    this.journal.push({ do: 'call', atMs: this.#now(), call: sent, reply })
    if (fate === 'reply lost') throw new Error('connection lost')
    if (fate === 'hangs') await new Promise<void>((resolve) => this.hanging.push(resolve))
    return reply
  }

  async ping(): Promise<void> {
    if (!this.isPingGood) throw new Error('no answer')
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
  readonly memory: MemoryLedgerStore
  readonly store: FallibleStore
  live = 1
  #processes = 0

  constructor(timing: LedgerTiming = LEDGER_TIMING, startMs = Date.UTC(2026, 0, 14, 12, 0, 0, 400)) {
    this.clock = new ManualClock(startMs)
    this.timing = timing
    this.memory = new MemoryLedgerStore(() => this.clock.now(), timing)
    this.store = new FallibleStore(this.memory, () => this.clock.now())
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
