/** The Redis Function library of the ledger. The operator loads it; gateways only call `acquire` and `count`. */
import {
  BALANCE,
  DAY_MS,
  GRANTS,
  LEDGER_CAPS,
  LEDGER_TIMING,
  longestLeaseMs,
  MAX_SKEW_MS,
  MAX_SUM,
  MIN_SKEW_MS,
  PERMIT_LIFE_MS,
  PERMIT_TTL_MS,
  PROCESS_TTL_MS,
  rateTtlMs,
  slotCount,
  type LedgerTiming,
} from './ledger-layout.ts'
import { libraryCode, libraryPrefix } from '../redis/function-library.ts'
import { MAX_REPORTED_ROWS, MAX_WAITING_ROWS, USAGE_COLUMNS } from '../usage/usage-report.ts'

/** Layout of the arguments and of the ledger. Another layout is another library, which also answers the older names on the same state. */
const MAJOR = 1
/** Number of the text within one layout. All texts answer the same calls. */
const REVISION = 12

/** Longest name that a call may hold: process, seed, field. */
const MAX_WORD_BYTES = 512
/** Longest argument: every row that the caps allow, each with the longest word. */
const MAX_CALL_BYTES = 128 * 1024
/** Longest value that is read from a hash; a seed is the longest that the library writes. */
const MAX_VALUE_BYTES = MAX_WORD_BYTES
/** Largest hash of permits: 1,024 processes with names of 253 bytes. */
const MAX_PERMITS_BYTES = 2 ** 20
/** Largest hash of budgets that is read as a whole. */
const MAX_BUDGET_BYTES = 2 ** 22
/** Largest hash of the usage of an account: all rows that wait, with names of usual length. */
const MAX_USAGE_BYTES = 2 ** 23

const CALLBACKS = [
  ...(['acquire', 'seed', 'reap', 'forget', 'bury', 'revision', 'read', 'survey', 'settled', 'walk', 'count', 'take'] as const),
  ...(['balance', 'merge', 'raise', 'free'] as const),
] as const
type Callback = (typeof CALLBACKS)[number]

/** Names of the functions, and the text that defines them. Keys, arguments and reply of a function are in the comment above its Lua. */
export type LedgerFunctions = Readonly<Record<Callback | 'library' | 'code', string>>

/** Commands inside `acquire` and `count`, which a gateway's user must have on `ledgerPattern`. */
export const LEDGER_COMMANDS = [
  ...(['time', 'hmget', 'hgetall', 'hlen', 'hstrlen', 'hset', 'hdel', 'pexpire', 'unlink'] as const),
  ...(['object|encoding', 'memory|usage', 'sadd'] as const),
] as const

/** `call` has the checked integers and the argument of a call, which all others use. */
const PARTS = ['call', 'rates', 'holds', 'balance', 'acquire', 'seed', 'checkpoint', 'balance-books', 'usage'] as const
const FILES = PARTS.map((part) => `ledger/ledger-${part}.lua`)

/**
 * @param prefix chart value `redis.keyPrefix`
 * @param timing windows other than a minute, for tests
 */
export function ledgerFunctions(prefix: string, timing: LedgerTiming = LEDGER_TIMING): LedgerFunctions {
  const library = `${libraryPrefix(prefix)}_ledger_v${MAJOR}`
  const names = Object.fromEntries(CALLBACKS.map((callback) => [callback, `${library}_${callback}`])) as Record<Callback, string>
  const code = libraryCode({ library, revision: REVISION, constants: constants(timing), files: FILES, names, flags: FLAGS })
  return { ...names, library, code }
}

function constants(timing: LedgerTiming): Record<string, number | string> {
  return {
    REVISION,
    WINDOW_MS: timing.windowMs,
    SLOT_MS: timing.slotMs,
    LONGEST_LEASE_MS: longestLeaseMs(timing),
    MAX_SLOTS: slotCount(timing),
    RATE_TTL_MS: rateTtlMs(timing),
    MAX_SKEW_MS,
    MIN_SKEW_MS,
    MAX_SUM,
    PERMIT_LIFE_MS,
    PERMIT_TTL_MS,
    PROCESS_TTL_MS,
    MAX_WORD_BYTES,
    MAX_CALL_BYTES,
    MAX_VALUE_BYTES,
    MAX_PERMITS_BYTES,
    MAX_BUDGET_BYTES,
    MAX_USAGE_BYTES,
    DAY_MS,
    USAGE_COLUMNS: USAGE_COLUMNS.length,
    MAX_REPORTED_ROWS,
    MAX_WAITING_ROWS,
    MAX_REFUNDS: LEDGER_CAPS.refunds,
    MAX_BOOKINGS: LEDGER_CAPS.bookings,
    MAX_REPORTS: LEDGER_CAPS.reports,
    MAX_BUDGETS: LEDGER_CAPS.budgets,
    MAX_PERIODS: LEDGER_CAPS.periods,
    HALF: BALANCE.half,
    MAX_HALVES: BALANCE.mostHalves,
    MAX_OPEN_SPEND: BALANCE.mostOpenSpend,
    LAST_PERIOD: BALANCE.lastPeriod,
    MAX_AHEAD: BALANCE.mostAhead,
    MAX_PROCESSES: LEDGER_CAPS.processes,
    MAX_BUDGET_FIELDS: LEDGER_CAPS.budgetFields,
    IDLE_PERMITS_FROM: GRANTS.idlePermitsFrom,
    LAST_BUDGET_PART: GRANTS.lastBudgetPart,
    FLOAT_PART: GRANTS.floatPart,
    FLOAT_SHARE: GRANTS.floatShare,
  }
}

const FLAGS: Readonly<Partial<Record<Callback, string>>> = {
  forget: `'allow-oom'`,
  bury: `'allow-oom'`,
  revision: `'no-writes'`,
  read: `'no-writes'`,
  survey: `'no-writes'`,
  settled: `'allow-oom'`,
  walk: `'allow-oom', 'allow-cross-slot-keys'`,
  balance: `'no-writes'`,
  free: `'allow-oom'`,
}
