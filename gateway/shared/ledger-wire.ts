/** Arguments and reply of `acquire` as flat lists of strings. No JSON: the function would spend most of its time on it. */
import type { BudgetReply, LedgerAnswer, LedgerBatch, LedgerCall, LedgerReply, PermitReply, RateReply, SlotAmount } from './ledger-call.ts'

/** A reply that no library of this layout gives. */
export class LedgerReplyUnreadable extends Error {
  constructor() {
    super('the reply of the ledger cannot be read; check REDIS_KEY_PREFIX and the version of the operator')
    this.name = 'LedgerReplyUnreadable'
  }
}

const NO_BATCH: LedgerBatch = { number: 0, refunds: [], bookings: [], debts: { r: 0, t: 0 }, usage: [] }

/** Arguments of one call, in the order in which `call_of` reads them. */
export function encodeLedgerCall(call: LedgerCall): string[] {
  const batch = call.batch ?? NO_BATCH
  const { refunds, bookings, usage, debts } = batch
  const { reports, permits, rates, budgets } = call
  const values: Array<string | number> = [call.process, call.number, call.acknowledged, call.live, call.seed, batch.number]
  values.push(refunds.length, bookings.length, usage.length, reports.length, permits ? 1 : 0, rates.length, budgets.length)
  values.push(debts.r, debts.t, ...slotAmounts(refunds), ...slotAmounts(bookings))
  for (const row of usage) values.push(row.model, row.requests, row.input, row.output, row.cached, row.cost, row.estimated, row.unpriced)
  for (const row of reports) values.push(row.field, row.held, row.spent, row.acknowledged, row.seen)
  if (permits) values.push(permits.limit, permits.held, permits.need, permits.ask, permits.want)
  for (const row of rates) values.push(row.kind, row.limit, row.need, row.ask, row.want, row.leaseMs)
  for (const row of budgets) {
    const [present, next] = row.windows
    values.push(row.budget, row.amount, row.need, row.ask, row.want, present.startMs, next.startMs, present.endMs, next.endMs)
  }
  return values.map(String)
}

function slotAmounts(rows: readonly SlotAmount[]): Array<string | number> {
  return rows.flatMap(({ kind, slot, amount }) => [kind, slot, amount])
}

/** @throws LedgerReplyUnreadable */
export function decodeLedgerReply(call: LedgerCall, reply: unknown): LedgerReply {
  const words = new Words(reply)
  const status = words.word()
  const nowMs = words.integer()
  const decoded = decodeStatus(status, nowMs, call, words)
  words.finish()
  return decoded
}

function decodeStatus(status: string, nowMs: number, call: LedgerCall, words: Words): LedgerReply {
  switch (status) {
    case 'stale':
      return { status, nowMs, number: words.integer() }
    case 'lost':
      return { status, nowMs, number: words.integer(), batch: words.integer() }
    case 'unseeded':
    case 'window':
      return { status, nowMs }
    case 'granted':
    case 'short':
      return { status, nowMs, ...answer(call, words) }
    default:
      throw new LedgerReplyUnreadable()
  }
}

function answer(call: LedgerCall, words: Words): Omit<LedgerAnswer, 'status' | 'nowMs'> {
  const seed = words.word()
  const spent = call.reports.map(() => words.integer())
  const permits = call.permits ? permitReply(words) : undefined
  return { seed, spent, permits, rates: call.rates.map(() => rateReply(words)), budgets: call.budgets.map(() => budgetReply(words)) }
}

function permitReply(words: Words): PermitReply {
  return { grant: words.integer(), rest: words.integer(), waitMs: words.integer() }
}

function rateReply(words: Words): RateReply {
  return { grant: words.integer(), slot: words.integer(), rest: words.integer(), resetMs: words.integer(), waitMs: words.integer() }
}

const SHORT = ['No', 'Spent', 'Held'] as const

function budgetReply(words: Words): BudgetReply {
  const startMs = words.integer()
  const [grant, spent, unsettled, held] = [words.integer(), words.integer(), words.integer(), words.integer()]
  return { startMs, grant, spent, unsettled, held, short: SHORT[words.integer()] ?? 'Spent' }
}

/** Reads a flat reply from front to back. */
class Words {
  readonly #words: readonly unknown[]
  #at = 0

  constructor(reply: unknown) {
    if (!Array.isArray(reply)) throw new LedgerReplyUnreadable()
    this.#words = reply
  }

  word(): string {
    const word = this.#words[this.#at++]
    if (typeof word !== 'string') throw new LedgerReplyUnreadable()
    return word
  }

  integer(): number {
    const word = this.word()
    const value = Number(word)
    if (!/^-?\d{1,16}$/.test(word) || !Number.isSafeInteger(value)) throw new LedgerReplyUnreadable()
    return value
  }

  finish(): void {
    if (this.#at !== this.#words.length) throw new LedgerReplyUnreadable()
  }
}
