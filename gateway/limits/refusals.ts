import { NEVER, type BudgetReply, type LedgerAnswer, type LedgerCall } from '#contract/ledger/ledger-call.ts'
import { longestLeaseMs, MAX_AMOUNT, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { BudgetBook } from './budget-book.ts'
import type { RefusedLimit } from './ledger.ts'

export interface Shortage {
  readonly limit: RefusedLimit
  /** Name of the budget; absent for rates and permits. */
  readonly budget?: string
  readonly rest: number
  /** Monotonic ms at which the refused request would pass if it were alone; Infinity for never. */
  readonly passesAt: number
  /** Monotonic ms until which more than `rest` is refused without a call. */
  readonly cachedUntil: number
}

/** Others may return units of such a limit at any time. */
const SHORT_CACHE_MS = 250

/** Recent refusals of the store, so that a storm of requests costs no calls. */
export class Refusals {
  /** Undefined until something is refused: most subjects never are. */
  #shortages: Map<string, Shortage> | undefined

  /** @param limit `r`, `t`, `permits`, or the id of a budget */
  set(limit: string, shortage: Shortage): void {
    this.#shortages ??= new Map()
    this.#shortages.set(limit, shortage)
  }

  /** @returns the shortage if more than its rest is lacking, so that the store need not be asked */
  find(limit: string, lacking: number, now: number): Shortage | undefined {
    const shortage = this.#shortages?.get(limit)
    if (!shortage || now >= shortage.cachedUntil || lacking <= shortage.rest) return undefined
    return shortage
  }

  /** Drops a refusal, because this process has returned units: the next request asks the store. */
  delete(limit: string): void {
    this.#shortages?.delete(limit)
    if (this.#shortages?.size === 0) this.#shortages = undefined
  }

  get isEmpty(): boolean {
    return this.#shortages === undefined
  }
}

const HELD_WAIT_MS = 1_000

type Named = readonly [limit: string, shortage: Shortage]

interface Answered {
  readonly parts: Pick<LedgerCall, 'rates' | 'permits' | 'budgets'>
  /** Budgets of the rows of `parts.budgets`. */
  readonly books: readonly BudgetBook[]
  readonly answer: LedgerAnswer
  readonly timing: LedgerTiming
}

/** The shortages in an answer, by limit. @param now monotonic ms of the answer */
export function shortagesOf(answered: Answered, now: number): Named[] {
  return [...rateShortages(answered, now), ...permitShortage(answered.answer, now), ...budgetShortages(answered, now)]
}

/** Requests come back after their minute, or with the unused lease of another process, after as long as a lease can live. */
function rateShortages({ parts, answer, timing }: Answered, now: number): Named[] {
  return parts.rates.flatMap(({ kind }, index): Named[] => {
    const reply = answer.rates[index]
    if (!reply || reply.waitMs === 0) return []
    const passesAt = reply.waitMs === NEVER ? Infinity : now + reply.waitMs
    const cachedUntil = Math.min(passesAt, now + (kind === 'r' ? longestLeaseMs(timing) : SHORT_CACHE_MS))
    return [[kind, { limit: kind === 'r' ? 'requests' : 'tokens', rest: Math.max(0, reply.rest), passesAt, cachedUntil }]]
  })
}

function permitShortage({ permits }: LedgerAnswer, now: number): Named[] {
  if (!permits || permits.waitMs === 0) return []
  const rest = Math.max(0, permits.rest)
  return [['permits', { limit: 'concurrency', rest, passesAt: now + permits.waitMs, cachedUntil: now + SHORT_CACHE_MS }]]
}

function budgetShortages({ parts, books, answer }: Answered, now: number): Named[] {
  return books.flatMap((book, index): Named[] => {
    const request = parts.budgets[index]
    const reply = answer.budgets[index]
    if (!request || !reply || reply.short === 'No') return []
    const endMs = request.windows.find(({ startMs }) => startMs === reply.startMs)?.endMs ?? 0
    return [[book.id, budgetShortage(book, reply, now, endMs === MAX_AMOUNT ? Infinity : now + endMs - answer.nowMs)]]
  })
}

/**
 * Only the end of the window restores a spent budget. A part of a held one may come back with a running request, and holds of a process
 * that seemed dead with the process.
 */
function budgetShortage(book: BudgetBook, reply: BudgetReply, now: number, windowEnd: number): Shortage {
  const rest = Math.max(0, book.spec.amount - reply.spent - reply.unsettled - reply.held)
  const cached = Math.min(windowEnd, now + SHORT_CACHE_MS)
  const budget = book.spec.name
  if (reply.short === 'Held') return { limit: 'budgetHeld', budget, rest, passesAt: now + HELD_WAIT_MS, cachedUntil: cached }
  const isFinal = reply.spent >= book.spec.amount
  return { limit: 'budgetSpent', budget, rest, passesAt: windowEnd, cachedUntil: isFinal ? windowEnd : cached }
}
