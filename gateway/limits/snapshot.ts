import type { LedgerAnswer } from '#contract/ledger/ledger-call.ts'
import type { BudgetSnapshot, LedgerSnapshot, RateState } from './ledger.ts'
import type { SentParts, SubjectBooks } from './subject-books.ts'

/** Builds a snapshot of a subject from an answer that contains every limit. @param now monotonic ms */
export function snapshotOf(books: SubjectBooks, { parts, books: asked }: SentParts, answer: LedgerAnswer, now: number): LedgerSnapshot {
  const rates: Partial<Record<'requests' | 'tokens', RateState>> = {}
  for (const lease of [books.requests, books.tokens]) {
    const state = lease.state(now)
    if (state) rates[lease.kind === 'r' ? 'requests' : 'tokens'] = state
  }
  const limit = books.permits.limit
  const concurrency = limit !== undefined && answer.permits ? { limit, used: limit - answer.permits.rest } : undefined
  const budgets = asked.flatMap(({ spec }, index): BudgetSnapshot[] => {
    const reply = answer.budgets[index]
    const window = parts.budgets[index]?.windows.find(({ startMs }) => startMs === reply?.startMs)
    if (!reply || !window) return []
    const { name, unit, amount } = spec
    const { spent, held, unsettled, startMs } = reply
    const endMs = spec.window === 'Lifetime' ? Infinity : window.endMs
    return [{ name, unit, window: spec.window, amount, spent, held, unsettled, startMs, endMs }]
  })
  return { ...rates, ...(concurrency ? { concurrency } : {}), budgets }
}
