/** Random calls to a ledger: valid ones, late ones, repeated ones, and some with numbers that only a bug would send. */
import type { BalanceRequest, BudgetReport, LedgerBatch, LedgerCall, RateKind, SlotAmount } from '#contract/ledger/ledger-call.ts'
import { type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { halvesOf } from '#contract/values/signed-micros.ts'
import { type AccountSpend, spentField } from '#contract/ledger/account-spend.ts'
import type { SeededRandom } from './seeded-random.ts'

const KINDS: readonly [RateKind, ...RateKind[]] = ['r', 't']
const DAY_MS = 86_400_000
const PROCESSES: readonly [string, ...string[]] = ['p1', 'p2', 'p3']
/** Sums beside zero, one unit below 10^9, 2^53, and as large as sums can become. */
const SUMS: readonly [bigint, ...bigint[]] = [0n, -1n, 10n ** 15n - 1n, 10n ** 15n, 2n ** 53n, 10n ** 27n, -(10n ** 27n)]

/** What the operator does to a balance. */
export type BalanceStep =
  | { readonly do: 'merge'; readonly books: AccountSpend; readonly isReady: boolean }
  | { readonly do: 'raise'; readonly period: number }
  | { readonly do: 'free'; readonly process: string; readonly isStale: boolean }

/** What a generator remembers, so that most calls fit those before. */
export class RandomLedgerCalls {
  readonly #random: SeededRandom
  readonly #timing: LedgerTiming
  readonly #subject: string
  #number = 0
  readonly #acknowledged = new Map<string, number>()
  readonly #spent = new Map<string, number>()
  #seed = 'seed-1'
  /** Of the balance: the present period, and a closed spend that the operator may have merged. */
  #period = 1
  #closedSpend = 0n

  constructor(random: SeededRandom, timing: LedgerTiming, subject: string) {
    this.#random = random
    this.#timing = timing
    this.#subject = subject
  }

  acknowledged(call: LedgerCall, seed = this.#seed): void {
    this.#acknowledged.set(call.process, call.number)
    this.#seed = seed
  }

  next(nowMs: number): LedgerCall {
    const random = this.#random
    const process = random.pick(PROCESSES)
    const number = random.chance(0.05) ? Math.max(1, this.#number - random.below(3)) : (this.#number += 1 + random.below(2))
    const acknowledged = random.chance(0.03) ? number : (this.#acknowledged.get(process) ?? 0)
    return {
      subject: this.#subject,
      process,
      number,
      acknowledged,
      live: 1 + random.below(4),
      ...this.#bounds(nowMs),
      wasAway: random.chance(0.2),
      batch: random.chance(0.6) ? this.#batch(nowMs) : undefined,
      reports: random.chance(0.6) ? this.#reports(process, nowMs) : [],
      permits: random.chance(0.6) ? { limit: 1 + random.below(20), held: random.below(8), ...this.#needs(5) } : undefined,
      rates: KINDS.filter(() => random.chance(0.7)).map((kind) => ({
        kind,
        limit: 1 + random.below(200),
        ...this.#needs(60),
        leaseMs: random.pick([50, this.#timing.leaseMs, 10 * this.#timing.leaseMs]),
      })),
      budgets: random.chance(0.6) ? this.#budgets(nowMs) : [],
      balance: random.chance(0.6) ? this.#balance(process) : undefined,
    }
  }

  balanceStep(): BalanceStep {
    const random = this.#random
    if (random.chance(0.2)) return { do: 'free', process: random.pick(PROCESSES), isStale: random.chance(0.2) }
    if (random.chance(0.3)) return { do: 'raise', period: (this.#period += random.below(2)) }
    if (random.chance(0.5)) this.#closedSpend += random.pick([1n, 7n, 10n ** 15n - 1n, 2n ** 53n])
    const rows = PROCESSES.flatMap((process) => this.#periods().map((period) => [spentField(period, process), random.below(200)] as const))
    const openFrom = Math.max(0, this.#period - 1 - random.below(3))
    const books = { openFrom, closedSpend: this.#closedSpend, spent: new Map(rows.filter(() => random.chance(0.3))) }
    return { do: 'merge', books, isReady: random.chance(0.7) }
  }

  #balance(process: string): BalanceRequest {
    const random = this.#random
    if (random.chance(0.03)) this.#period += 1
    const near = this.#closedSpend + BigInt(random.below(3_000))
    const credits = random.chance(0.7) ? near : random.pick(SUMS) + BigInt(random.below(3))
    return {
      ...(random.chance(0.85) && { credits: halvesOf(credits) }),
      period: Math.max(0, this.#period - random.below(3)),
      held: random.below(60),
      spent: this.#periods().map((period) => ({ period, spent: this.#spentIn(period, process) })),
      ...this.#needs(200),
    }
  }

  #periods(): number[] {
    return [this.#period - 2, this.#period - 1, this.#period].filter((period) => period >= 0 && this.#random.chance(0.6))
  }

  /** Grows a little; seldom by as much as only a bug or an attacker would report, which the store refuses before long. */
  #spentIn(period: number, process: string): number {
    const random = this.#random
    const name = `${process} ${period}`
    const before = this.#spent.get(name) ?? 0
    const spent = Math.max(0, before + random.below(30) - (random.chance(0.05) ? 60 : 0))
    this.#spent.set(name, spent)
    return random.chance(0.005) ? 4 * 10 ** 15 + random.below(9) : spent
  }

  #bounds(nowMs: number): Pick<LedgerCall, 'earliestMs' | 'latestMs'> {
    const random = this.#random
    if (random.chance(0.4)) return { earliestMs: 0, latestMs: Number.MAX_SAFE_INTEGER }
    const earliestMs = Math.max(0, nowMs + random.pick([-1_000_000, -60_000, -3_000, -2, 0, 2, 3_000, 60_000, 1_000_000]))
    return { earliestMs, latestMs: earliestMs + random.below(10) }
  }

  #needs(most: number): { need: number; ask: number; want: number } {
    const random = this.#random
    const need = random.chance(0.5) ? 0 : random.below(most)
    return { need, ask: need + random.below(most), want: random.below(2 * most) }
  }

  #batch(nowMs: number): LedgerBatch {
    const random = this.#random
    const rows = (): SlotAmount[] => Array.from({ length: random.below(3) }, () => this.#slotAmount(nowMs))
    const number = random.chance(0.2) ? Math.max(1, this.#number - 3) : this.#number
    const debts = { r: 0, t: random.chance(0.3) ? random.below(50) : 0 }
    return { number, refunds: rows(), bookings: rows(), debts }
  }

  #slotAmount(nowMs: number): SlotAmount {
    const random = this.#random
    const { windowMs, slotMs } = this.#timing
    const slot = Math.floor(nowMs / slotMs) - 5 + random.below(Math.ceil(windowMs / slotMs) + 25)
    return { kind: random.pick(KINDS), slot, amount: 1 + random.below(30) }
  }

  #reports(process: string, nowMs: number): BudgetReport[] {
    const random = this.#random
    const day = Math.floor(nowMs / DAY_MS) * DAY_MS
    const fields = [`day:Currency:Day:${day}`, `day:Currency:Day:${day - DAY_MS}`, 'life:Tokens:Lifetime:0'].filter(() =>
      random.chance(0.6),
    )
    return fields.map((field) => {
      const before = this.#spent.get(`${process} ${field}`) ?? 0
      const spent = Math.max(0, before + random.below(40) - (random.chance(0.05) ? 60 : 0))
      this.#spent.set(`${process} ${field}`, spent)
      return {
        field,
        seed: random.pick(['', this.#seed, this.#seed, 'seed-0']),
        held: random.below(60),
        spent,
        acknowledged: Math.min(before, spent),
        base: random.below(1 + Math.min(before, spent)),
        seen: random.below(random.chance(0.1) ? 3_000 : 100),
      }
    })
  }

  #budgets(nowMs: number): LedgerCall['budgets'] {
    const random = this.#random
    const at = nowMs + (random.chance(0.1) ? 3 * DAY_MS : 0)
    const day = Math.floor(at / DAY_MS) * DAY_MS
    const life = { startMs: 0, endMs: Number.MAX_SAFE_INTEGER }
    const [today, tomorrow] = [
      { startMs: day, endMs: day + DAY_MS },
      { startMs: day + DAY_MS, endMs: day + 2 * DAY_MS },
    ]
    return [
      { budget: 'day:Currency:Day', amount: 500 + random.below(3_000), ...this.#needs(200), windows: [today, tomorrow] as const },
      { budget: 'life:Tokens:Lifetime', amount: 500 + random.below(9_000), ...this.#needs(200), windows: [life, life] as const },
    ].filter(() => random.chance(0.7))
  }
}
