/** Tells failures of the database from all others: they are answered with "try again", and never with "wrong" or "sign in again". */
import { KubeError } from '#kube/port.ts'
import { Ending, Misconfigured } from '#platform/lifecycle.ts'
import { messageOf } from '#platform/message-of.ts'

/** Primary result codes of SQLite: busy, locked, read-only, I/O error, damaged, disk full, cannot open, no database. */
const SQLITE_CODES: ReadonlySet<number> = new Set([5, 6, 8, 10, 11, 13, 14, 26])
/** Classes of SQLSTATE: connection, resources, operator intervention, system error; 25006 is a read-only transaction. */
const SQLSTATE = /^(08|53|57|58)|^25006$/
/** Errors of the connection to Postgres that have no SQLSTATE. */
const CONNECTION =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|Query read timeout)/
const NETWORK: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])
/** Wrong user or password, no such database, no right to create tables. */
const REFUSALS = /^(28|3D|42501)/
const DEPTH = 5

interface Failure {
  readonly code?: unknown
  readonly errcode?: unknown
  readonly message?: unknown
  readonly cause?: unknown
}

/** Whether the error, or one that caused the error, says that the database cannot be used now. */
export function isDatabaseFailure(error: unknown, depth = DEPTH): boolean {
  if (typeof error !== 'object' || error === null || isOfAnotherPart(error)) return false
  const failure: Failure = error
  return isOwnFailure(failure) || (depth > 0 && isDatabaseFailure(failure.cause, depth - 1))
}

function isOwnFailure({ code, errcode, message }: Failure): boolean {
  if (code === 'ERR_SQLITE_ERROR') return SQLITE_CODES.has(primaryOf(errcode)) // others are violated constraints and mistakes of ours
  if (typeof code === 'string' && (SQLSTATE.test(code) || NETWORK.has(code))) return true
  return typeof message === 'string' && CONNECTION.test(message)
}

/** A provider (fetch) or the API server that does not answer: the codes of the network are the same. */
function isOfAnotherPart(error: object): boolean {
  return error instanceof KubeError || (error instanceof TypeError && error.message === 'fetch failed')
}

/** The primary result code of SQLite; 0 for all that has none. */
function primaryOf(errcode: unknown): number {
  return typeof errcode === 'number' ? errcode & 0xff : 0
}

const ACCESS = 'let the user of the dashboard write into its folder, and check the volume'
const REMEDIES: Readonly<Record<number, string>> = {
  5: 'stop the other process that has the file open: one dashboard alone may use a file',
  8: ACCESS,
  10: ACCESS,
  13: 'free some space on its volume',
  14: ACCESS,
}
const DAMAGED = 'restore the file from a backup, or move it away: people then sign up again, and keep their accounts by their addresses'

/** What to do about a file that cannot be used. */
export function sqliteRemedy(error: unknown): string {
  const { code, errcode } = error as Failure
  if (code === 'ERR_SQLITE_ERROR') return REMEDIES[primaryOf(errcode)] ?? DAMAGED
  return typeof code === 'string' ? ACCESS : DAMAGED // a code of the file system; the file is damaged where there is none
}

/** What ends a start whose database cannot be used: one line, without the URL, which holds a password. */
export function startError(type: 'sqlite' | 'postgres', error: unknown): unknown {
  const { code } = (typeof error === 'object' && error !== null ? error : {}) as Failure
  const reason = messageOf(error) || String(code) // a refused connection to several addresses has no message
  if (type === 'sqlite')
    return isDatabaseFailure(error) ? new Misconfigured(`DATABASE_FILE: ${reason}; ${sqliteRemedy(error)}`, { cause: error }) : error
  if (typeof code === 'string' && REFUSALS.test(code))
    return new Misconfigured(`DATABASE_URL: ${reason}; set it to a user with a password and a database that exist`, { cause: error })
  if (!isDatabaseFailure(error)) return error
  return new Ending(`DATABASE_URL: the database does not answer (${reason}); check that it runs and can be reached`, { cause: error })
}
