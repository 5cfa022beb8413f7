/** The two interfaces of limits: `Ledger` for a request, which reserves before the backend and settles once afterwards; `LedgerStore` for what all processes share. */
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import type { BudgetSpec, LimitOwner, LimitSubject } from '#policy/effective.ts'

export type { BudgetSpec, LimitOwner, LimitSubject } from '#policy/effective.ts'
export type { Limits } from '#contract/records/limits-record.ts'

/** Units that one request takes at admission: safe integers >= 0. */
export interface Need {
  /** Tokens to hold of tokensPerMinute; cut to the limit. */
  readonly tokens: number
  /** Tokens that the request uses for certain: above tokensPerMinute the request can never pass. */
  readonly certainTokens?: number | undefined
  /** Worst case per budget unit. `Currency` is undefined for a model without a price. */
  readonly holdByUnit: { readonly Currency: number | undefined; readonly Tokens: number }
}

export interface SettledUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Micro-units; undefined for a model without a price. */
  readonly costMicros: number | undefined
}

/** A rate limit as the headers show it, after this request. */
export interface RateState {
  readonly limit: number
  /** >= 0; may be too low, never too high. */
  readonly remaining: number
  /** ms until no unit is booked. */
  readonly resetMs: number
}

/** Of several subjects, the limit nearest to exhaustion. Absent without such a limit. */
export interface RateStates {
  readonly requests?: RateState | undefined
  readonly tokens?: RateState | undefined
}

/** The hold of an admitted request. Settle or release it exactly once; later calls do nothing. */
export interface Hold {
  readonly outcome: 'held'
  readonly rates: RateStates
}

/**
 * `…Spent`, `…Exhausted`, `…TooSmall`, `unpriced`: waiting does not help soon (402). `…TooSmall`: a smaller request may pass. `…Held`: only
 * holds of running requests are in the way. `tooLarge`: above the whole tokensPerMinute.
 */
export type RefusedLimit =
  | ('requests' | 'tokens' | 'concurrency' | 'tooLarge')
  | ('budgetSpent' | 'budgetTooSmall' | 'budgetHeld')
  | ('balanceExhausted' | 'balanceTooSmall' | 'balanceHeld')
  | 'unpriced'

/** The limit that refuses a request. */
export interface Shortage {
  readonly limit: RefusedLimit
  readonly whose: LimitOwner
  /** Absent for rates, permits and a balance. */
  readonly budget?: Pick<BudgetSpec, 'name' | 'unit'> | undefined
  /** Units that the request needs; undefined if they are not known, and for a balance, which no key may see. */
  readonly needed: number | undefined
  /** Units that are left for it; for `tooLarge`, the whole limit. */
  readonly left: number | undefined
}

export interface Refused extends Shortage {
  readonly outcome: 'refused'
  /** ms until the same request would pass if it were alone. For a budget, until its window ends. */
  readonly waitMs: number | 'never'
  /** ms until the limit is whole again; undefined if that time is not known, as for a balance; Infinity for a Lifetime budget. */
  readonly resetMs: number | undefined
  readonly rates: RateStates
}

export interface Unavailable {
  readonly outcome: 'unavailable'
  /** For the log; holds no value of a key. */
  readonly reason: 'store' | 'unseeded' | 'closed' | 'need'
  readonly waitMs: number
}

export type Verdict = Hold | Refused | Unavailable

export interface BudgetSnapshot extends Pick<BudgetRecord, 'name' | 'unit' | 'window' | 'amount'> {
  readonly spent: number
  /** Held by running requests and by idle floats of all processes. */
  readonly held: number
  /** Holds of dead processes, which count as spent. */
  readonly unsettled: number
  readonly startMs: number
  /** Infinity for Lifetime. */
  readonly endMs: number
}

/** Usage of a subject over all processes. Leased units count as used. */
export interface LedgerSnapshot extends RateStates {
  /** ms since 1970. */
  readonly atMs: number
  readonly concurrency?: { readonly limit: number; readonly used: number } | undefined
  readonly budgets: readonly BudgetSnapshot[]
}

export interface Ledger {
  /** All or none. At once if the leases of this process suffice, otherwise after one call to the store. Never throws or rejects. */
  reserve(subjects: readonly LimitSubject[], need: Need): Verdict | Promise<Verdict>
  /**
   * A refusal that every request of the subject would get now, whatever its needs: requests per minute are used up. Reads memory
   * alone, so that a caller can refuse a storm before reading bodies.
   * @returns undefined if some request may pass, or if only the store can decide
   */
  knownRefusal(subject: LimitSubject): Refused | undefined
  /** Counts usage on the first call for a hold; never waits. Unknown usage, or usage that is not a number, counts as the whole hold. */
  settle(hold: Hold, usage: SettledUsage | undefined): void
  /** Returns everything, also the request: nothing has reached a backend. */
  release(hold: Hold): void
  /** The store may have lost data: every subject tells it again, and soon, what this process has spent and holds. */
  reportAgain(): void
  /** The record of a subject no longer admits requests, or has other limits: its leases end at once. */
  changed(uid: string): void
  /** The record of a subject was deleted: its leases end at once. The process forgets the spend of the subject once the store knows the spend. */
  deleted(uid: string): void
  /** At most a second old, without a balance. @throws Error if the store does not answer or the budgets have no seed */
  snapshot(subject: LimitSubject): Promise<LedgerSnapshot>
  /** Sends pending reports and returns leases, for at most `deadlineMs`. New requests are Unavailable. */
  close(deadlineMs: number): Promise<void>
}

/** The store that all processes share for limits. */
export interface LedgerStore {
  /** One atomic step. It also settles after a late answer. @throws Error if the store does not answer, or refuses */
  call(call: LedgerCall): Promise<LedgerReply>
  ping(): Promise<void>
}

/** An error reply: the store works and refuses this call. Calls about other subjects may succeed. */
export class LedgerCallRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LedgerCallRefused'
  }
}
