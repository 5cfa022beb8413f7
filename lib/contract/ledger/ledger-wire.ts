/** Argument and reply of `acquire`: a call in JSON, and a flat list of words and integers. */
import type { BalanceReply, BudgetReply, LedgerAnswer, LedgerCall, LedgerReply, PermitReply, RateReply } from './ledger-call.ts'

/** Thrown for a reply that no library of this layout gives. */
export class LedgerReplyUnreadable extends Error {
  constructor() {
    super('the reply of the ledger cannot be read; check REDIS_KEY_PREFIX and the version of the operator')
    this.name = 'LedgerReplyUnreadable'
  }
}

/** Stands for the first open period of a balance that is not ready. */
const NOT_READY = -1

/** The argument of one call: the call as JSON, which Redis reads in C. */
export function encodeLedgerCall(call: LedgerCall): string {
  return JSON.stringify(call)
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
  const rates = call.rates.map(() => rateReply(words))
  const budgets = call.budgets.map(() => budgetReply(words))
  return { seed, spent, permits, rates, budgets, balance: call.balance ? balanceReply(words) : undefined }
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

const BALANCE_SHORT = ['No', 'Exhausted', 'Held', 'TooSmall'] as const

function balanceReply(words: Words): BalanceReply {
  const period = words.integer()
  const openFrom = words.integer()
  const [grant, unspent, held] = [words.integer(), words.integer(), words.integer()]
  const short = BALANCE_SHORT[words.integer()] ?? 'Exhausted'
  return { period, openFrom: openFrom === NOT_READY ? undefined : openFrom, grant, unspent, held, short }
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
    const value = this.#words[this.#at++]
    if (!Number.isSafeInteger(value)) throw new LedgerReplyUnreadable()
    return value as number // a safe integer is a number
  }

  finish(): void {
    if (this.#at !== this.#words.length) throw new LedgerReplyUnreadable()
  }
}
