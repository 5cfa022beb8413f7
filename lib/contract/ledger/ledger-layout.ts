/** Constants of the ledger that both programs and both stores share: windows, slots, lifetimes, and the caps of one call. */

/** Lengths in whole ms. Tests scale them; everything that shares one ledger must use the same values. */
export interface LedgerTiming {
  /** Length of the rolling window of the rate limits. */
  readonly windowMs: number
  /** Width of one slot of the window. */
  readonly slotMs: number
  /** Usual life of a lease. */
  readonly leaseMs: number
}

export const LEDGER_TIMING: LedgerTiming = { windowMs: 60_000, slotMs: 1_000, leaseMs: 1_000 }

/** A lease of a limit that is less than half used lives this many times as long. */
const LONG_LEASE = 10

/** Longest life of a lease that a store accepts, in ms. */
export function longestLeaseMs({ leaseMs }: LedgerTiming): number {
  return LONG_LEASE * leaseMs
}

/** Maximum number of slots that a window spans. */
export function slotCount(timing: LedgerTiming): number {
  return Math.ceil((timing.windowMs + longestLeaseMs(timing)) / timing.slotMs) + 2
}

/**
 * Slot of a booking that counts until no admission under the lease can lie in the last window of any process.
 * The slot begins at least 1 ms after `nowMs + leaseMs + windowMs`, since the store's clock is rounded down to whole ms.
 * @param nowMs time of the store
 * @param leaseMs 0 for an earlier admission
 */
export function bookingSlot(nowMs: number, leaseMs: number, { windowMs, slotMs }: LedgerTiming): number {
  return Math.floor((nowMs + leaseMs + windowMs) / slotMs) + 1
}

/**
 * A store's clock that jumps by at most this is held back, or pushed on, by the monotonic clocks of the processes. One that goes back further
 * collapses the windows.
 */
export const MAX_SKEW_MS = 300_000
/** A smaller difference between the clock and the time of a subject is not remembered. */
export const MIN_SKEW_MS = 1_000
/** A process without a report for this long has lost its permits. */
export const PERMIT_LIFE_MS = 15_000
/** Permits and numbers of processes expire after this time without use. */
export const PERMIT_TTL_MS = 60_000
export const PROCESS_TTL_MS = 3_600_000
export const DAY_MS = 86_400_000

/** Added to the longest life of a booking before the hash of the windows expires. */
const RATE_TTL_GRACE_MS = 5_000

/** ms until an unused hash of rolling windows expires; every slot in it has ended by then. */
export function rateTtlMs(timing: LedgerTiming): number {
  return timing.windowMs + longestLeaseMs(timing) + RATE_TTL_GRACE_MS
}

/** Bounds of one call: the largest number of rows in each of its parts. */
export const LEDGER_CAPS = {
  refunds: 160,
  bookings: 160,
  reports: 32,
  budgets: 8,
  /** Periods of a balance. */
  periods: 8,
  /** Processes that hold permits of one subject. */
  processes: 1_024,
  /** Fields of the hash of budgets that one walk reads. */
  budgetFields: 16_384,
} as const

/** Sizes of grants beyond the need of waiting requests. */
export const GRANTS = {
  /** From this many permits per process on, a process keeps idle permits. */
  idlePermitsFrom: 8,
  /** The last part of a budget, one in this number, is granted without a float. */
  lastBudgetPart: 20,
  /** A float is at most one part in this number of the rest, */
  floatPart: 100,
  /** and at most one part in this number of the share of a process. */
  floatShare: 4,
} as const

/**
 * Bounds of a balance. The sum of all credits and the spend of closed periods may exceed 2^53, so each of them is two numbers: `high` counts
 * `half`, and `low` is the rest.
 */
export const BALANCE = {
  /** Micro-units. */
  half: 10 ** 15,
  /** The difference of two sums counts at most this many halves: then no difference that decides exceeds 2^53. */
  mostHalves: 8,
  /** Largest spend of all open periods together. The operator closes a period long before. */
  mostOpenSpend: 8 * 10 ** 15,
  /** Periods last hours. */
  lastPeriod: 10 ** 9,
  /** A report may be this many periods after the first open one, also in a store that went back to an older state: months. */
  mostAhead: 1_000,
} as const

/** Largest number anywhere in the ledger, because Lua's numbers are doubles. */
export const MAX_AMOUNT = Number.MAX_SAFE_INTEGER

/** Sums stop here: a field beyond `MAX_AMOUNT` would refuse every later call, and the client of Redis reads `MAX_AMOUNT` as 2^53. */
export const MAX_SUM: number = MAX_AMOUNT - 1

/** Name of one budget window's fields: another unit, window or start makes another field. `name:unit:window` and the start in ms. */
export function budgetField(budget: string, startMs: number): string {
  return `${budget}:${startMs}`
}

/** @returns the part of `budgetField` that all windows of a budget share */
export function budgetID(budget: { readonly name: string; readonly unit: string; readonly window: string }): string {
  return `${budget.name}:${budget.unit}:${budget.window}`
}
