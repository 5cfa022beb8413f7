/** Opens the database: a SQLite file, or Postgres where several replicas share it. Only people and their sign-in are stored here. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { NodeSqliteDialect } from '@better-auth/kysely-adapter/node-sqlite-dialect'
import { messageOf } from '#platform/message-of.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { sqliteRemedy } from './database-failure.ts'
import type { Tables } from './tables.ts'

/** Where the database is. `open` replaces the opening of the file, for tests that let statements fail. */
export type DatabasePlace = { readonly file: string; readonly open?: (path: string) => DatabaseSync } | { readonly url: string }

export interface Database {
  readonly db: Kysely<Tables>
  readonly type: 'sqlite' | 'postgres'
  /**
   * Runs `task` alone among all replicas, since two that create the same table at once would fail, and in one transaction: a process that dies in the
   * middle would leave a table whose index no later start makes.
   */
  alone<T>(task: (db: Kysely<Tables>) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Time that a write waits for a lock of another process on the file, ms. The whole process waits with it, so the time is short. */
const SQLITE_BUSY_MS = 200
/** Number of the advisory lock in Postgres: any constant, the same in every replica. */
const MIGRATION_LOCK = 4_711
const POSTGRES_CONNECTIONS = 10
const POSTGRES_CONNECT_MS = 5_000
const POSTGRES_QUERY_MS = 10_000

/** @throws Misconfigured if the file cannot be used */
export function openDatabase(place: DatabasePlace, onError: (error: Error) => void): Database {
  return 'file' in place ? openSqlite(place.file, place.open) : openPostgres(place.url, onError)
}

function openSqlite(path: string, open = (path: string): DatabaseSync => new DatabaseSync(path)): Database {
  let file: DatabaseSync | undefined
  try {
    if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    file = open(path)
    file.exec(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
    file.exec('PRAGMA secure_delete = ON') // else a backup has what was deleted, in pages that are free
    assertWhole(file)
    assertWritable(file)
    // the only connection: a second one would wait for the open transactions of the first, and block the process meanwhile
    const db = new Kysely<Tables>({ dialect: new NodeSqliteDialect({ database: file }) })
    return { db, type: 'sqlite', alone: (task) => db.transaction().execute(task), close: () => db.destroy() }
  } catch (cause) {
    if (file?.isOpen) file.close()
    throw new Misconfigured(`DATABASE_FILE: ${path} cannot be used (${messageOf(cause)}); ${sqliteRemedy(cause)}`, { cause })
  }
}

/** A damaged page would otherwise be found by the one person whose row is on it. Takes some 10 ms for 10,000 people. */
function assertWhole(file: DatabaseSync): void {
  const verdict = file.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
  if (verdict !== 'ok') throw new Error(String(verdict))
}

/** A journal in WAL mode opens without a write, also on a file that cannot be written. */
function assertWritable(file: DatabaseSync): void {
  file.exec('BEGIN IMMEDIATE; ROLLBACK')
}

function openPostgres(connectionString: string, onError: (error: Error) => void): Database {
  const pool = new pg.Pool({
    connectionString,
    max: POSTGRES_CONNECTIONS,
    connectionTimeoutMillis: POSTGRES_CONNECT_MS,
    query_timeout: POSTGRES_QUERY_MS,
  })
  pool.on('error', onError) // an idle connection ended; the next query opens another
  pool.on('connect', (client) => client.on('error', onError)) // one in use ended: without a listener, the process would end with it
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  return { db, type: 'postgres', alone: (task) => withLock(pool, () => db.transaction().execute(task)), close: () => db.destroy() }
}

async function withLock<T>(pool: pg.Pool, task: () => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK])
    try {
      return await task()
    } finally {
      await client.query('select pg_advisory_unlock($1)', [MIGRATION_LOCK])
    }
  } finally {
    client.release()
  }
}
