/** One call of a process to the ledger of one subject, and the store's reply. Every amount is a safe integer. */

import type { BudgetWindows } from '../values/budget-window.ts'
import type { SumHalves } from '../values/signed-micros.ts'

/** `r` requests, `t` tokens. */
export type RateKind = 'r' | 't'
export const RATE_KINDS: readonly RateKind[] = ['r', 't']

/** An amount in one slot of a rolling window. */
export interface SlotAmount {
  readonly kind: RateKind
  readonly slot: number
  readonly amount: number
}

/** Changes that count once: a store applies a batch only if its number is above that of the last one of the process. */
export interface LedgerBatch {
  readonly number: number
  /** Booked units that were not used; ignored for slots that have ended. */
  readonly refunds: readonly SlotAmount[]
  /** Admissions that the store does not know, after an outage or a loss of data. They are booked even above the limit. */
  readonly bookings: readonly SlotAmount[]
  /** Tokens used in excess of a hold, booked from now on even above the limit. */
  readonly debts: Readonly<Record<RateKind, number>>
}

/** State of one process in one budget window, in absolute numbers: a repeated report is harmless, and the next one repairs a lost reply. */
export interface BudgetReport {
  /** `budgetField` */
  readonly field: string
  /** Seed under which the store last had the spend of this window; '' before. Seeds end in a number that grows with each seed. */
  readonly seed: string
  /** Held by running requests and as float. */
  readonly held: number
  /** Spent by this process in this window since its start. */
  readonly spent: number
  /** `spent` at the last acknowledgement. */
  readonly acknowledged: number
  /** `acknowledged` in the first report under the seed: the budgets began with it. */
  readonly base: number
  /** Highest spend of all processes that this process has seen under the seed, or before. */
  readonly seen: number
}

/** Permits of running requests. */
export interface PermitRequest {
  readonly limit: number
  /** Permits that the process has now, absolute. */
  readonly held: number
  readonly need: number
  readonly ask: number
  readonly want: number
}

/**
 * What a process needs from a limit. Either the whole `need` is granted, or the call grants nothing. `ask`, for waiting requests, is
 * granted as far as available. `want` is granted only as a share of the free units.
 */
export interface RateRequest {
  readonly kind: RateKind
  readonly limit: number
  readonly need: number
  readonly ask: number
  readonly want: number
  /** Life of the lease, counted by the process from the moment of sending. */
  readonly leaseMs: number
}

/** What a process needs from a budget. */
export interface BudgetRequest {
  /** `budgetID` */
  readonly budget: string
  readonly amount: number
  readonly need: number
  readonly ask: number
  /** Float beyond `ask`. */
  readonly want: number
  /** The current window and the next; the store's time decides. */
  readonly windows: BudgetWindows
}

/** What one process has spent of a balance in one period, in micro-units: an absolute number, so that a repeated report is harmless. */
export interface PeriodSpend {
  readonly period: number
  readonly spent: number
}

/** The state of one process in the balance of an account, and what it needs from the balance. Amounts are micro-units. */
export interface BalanceRequest {
  /** Sum of all credits; absent for an account that is not prepaid: then nothing is refused and nothing is held. */
  readonly credits?: SumHalves
  /** The present period as far as the process knows; 0 before the first reply. */
  readonly period: number
  /** Held by running requests and as float, absolute. */
  readonly held: number
  /** In ascending order of the periods, at most `LEDGER_CAPS.periods`. */
  readonly spent: readonly PeriodSpend[]
  readonly need: number
  readonly ask: number
  /** Float beyond `ask`. */
  readonly want: number
}

/** Arguments of one call. */
export interface LedgerCall {
  /** uid of the ApiKey or Account. */
  readonly subject: string
  /** Random per start of a process. */
  readonly process: string
  /** Larger than every earlier number of this process. */
  readonly number: number
  /** Number of the last call of this subject that was answered; 0 before the first. */
  readonly acknowledged: number
  /** Processes that share the limits, at least 1. */
  readonly live: number
  /**
   * Bounds of the time of the store at this call, ms since 1970, by its last answer about the subject and the monotonic clock of the process.
   * A clock of the store that has jumped does not end any window early. 0 and `MAX_AMOUNT` before the first answer.
   */
  readonly earliestMs: number
  readonly latestMs: number
  /** Whether the process was away so long that the operator may have forgotten it: its acknowledged spend then counts already. */
  readonly wasAway: boolean
  readonly batch: LedgerBatch | undefined
  readonly reports: readonly BudgetReport[]
  readonly permits: PermitRequest | undefined
  readonly rates: readonly RateRequest[]
  readonly budgets: readonly BudgetRequest[]
  /** Absent for a subject that is not an account. */
  readonly balance: BalanceRequest | undefined
}

/** Wait for units that do not come back with time alone. */
export const NEVER = -1

/** Answer for one rate. */
export interface RateReply {
  readonly grant: number
  /** Slot of the grant. */
  readonly slot: number
  /** Units left for others after the grant; negative after a debt or a lowered limit. */
  readonly rest: number
  /** ms until the newest booking ends. */
  readonly resetMs: number
  /** 0 if not short; else ms until `need` fits, or NEVER. */
  readonly waitMs: number
}

/** Answer for permits. */
export interface PermitReply {
  readonly grant: number
  readonly rest: number
  readonly waitMs: number
}

/** Answer for one budget. */
export interface BudgetReply {
  /** Start of the window that the store has picked. */
  readonly startMs: number
  readonly grant: number
  readonly spent: number
  /** Holds of processes that have died: counted as spent. */
  readonly unsettled: number
  /** Held by all processes. */
  readonly held: number
  /** `Held`: short only through the holds of running requests. */
  readonly short: 'No' | 'Spent' | 'Held'
}

/** Answer for the balance. Amounts are micro-units and stop at `MAX_SUM`. */
export interface BalanceReply {
  /** The present period: what ends from now on is spent in it. */
  readonly period: number
  /** The first period whose spend may still grow; undefined while the balance is not ready, and grants nothing. */
  readonly openFrom: number | undefined
  readonly grant: number
  /** Credits minus the spend of all processes: negative after an overspend, and 0 for an account that is not prepaid or not ready. */
  readonly unspent: number
  /** Held by all processes after the grant. */
  readonly held: number
  /** `Held`: short only through the holds of running requests. `TooSmall`: something is left, and less than the need. */
  readonly short: 'No' | 'Exhausted' | 'Held' | 'TooSmall'
}

/** Reply of a store. Only `granted` and `short` hold answers row by row, in the order of the call. */
export type LedgerReply =
  /** A call with this number or a higher one came first; no effect. */
  | { readonly status: 'stale'; readonly nowMs: number; readonly number: number }
  /** The store has lost calls that it had acknowledged, or spend of other processes; no effect. `number`, `batch`: the last ones it knows. */
  | { readonly status: 'lost'; readonly nowMs: number; readonly number: number; readonly batch: number }
  /**
   * Batch, permits and the report of the balance counted. Budgets have no seed, and did not count; or the balance is not ready, and grants
   * nothing.
   */
  | { readonly status: 'unseeded'; readonly nowMs: number }
  /** Batch, permits and all reports counted; no window of a budget fits the store's time. */
  | { readonly status: 'window'; readonly nowMs: number }
  | LedgerAnswer

/** Everything reported has counted. `short`: at least one need did not fit, so nothing is granted. */
export interface LedgerAnswer {
  readonly status: 'granted' | 'short'
  readonly nowMs: number
  readonly seed: string
  /** Spend of all processes, per report. */
  readonly spent: readonly number[]
  readonly permits: PermitReply | undefined
  readonly rates: readonly RateReply[]
  readonly budgets: readonly BudgetReply[]
  readonly balance: BalanceReply | undefined
}
