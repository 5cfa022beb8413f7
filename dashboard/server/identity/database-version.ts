/** The version of the tables, kept in the database: a former program would misread what a later one has written. */
import { Misconfigured } from '#platform/lifecycle.ts'
import type { Kysely } from 'kysely'
import type { Database } from './database.ts'
import { startError } from './database-failure.ts'
import { createTables, type Tables } from './tables.ts'

/**
 * Raised by one with a change of the tables under which the program before would fail, or do wrong to people. What that program may ignore, such as
 * a further table, or a column that may be null, needs no new version, so that a rollback stays possible.
 */
export const TABLES_VERSION = 1
export const VERSION_TABLE = 'headgateVersion'
const ROW = 1
const SETTING = { sqlite: 'DATABASE_FILE', postgres: 'DATABASE_URL' } as const

/**
 * Brings all tables up to date, or none.
 * @param migrate those of the library
 * @throws Misconfigured for a database of a later version, and for one that cannot be used
 */
export async function bringUpToDate(database: Database, migrate: (db: Database['db']) => Promise<void>): Promise<void> {
  try {
    await database.alone(async (db) => {
      await claimVersion(db, database.type)
      await migrate(db)
      await createTables(db)
    })
  } catch (error) {
    throw startError(database.type, error)
  }
}

/**
 * Runs before the tables are brought up to date, in the same transaction.
 * @throws Misconfigured for a database of a later version, which is left as it is
 */
async function claimVersion(db: Kysely<Tables>, type: 'sqlite' | 'postgres'): Promise<void> {
  const found = await versionOf(db)
  if (found !== undefined && found > TABLES_VERSION)
    throw new Misconfigured(
      `${SETTING[type]}: the database has version ${found}, and this dashboard knows versions up to ${TABLES_VERSION}; install the version of ` +
        'Headgate that wrote the database, or restore the backup from before the upgrade. The database was not changed',
    )
  if (found === TABLES_VERSION) return
  await db.schema
    .createTable(VERSION_TABLE)
    .ifNotExists()
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('version', 'integer', (column) => column.notNull())
    .execute()
  await db
    .insertInto(VERSION_TABLE)
    .values({ id: ROW, version: TABLES_VERSION })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ version: TABLES_VERSION }))
    .execute()
}

/** @returns undefined for an empty database, and for one from before versions were written */
async function versionOf(db: Kysely<Tables>): Promise<number | undefined> {
  const tables = await db.introspection.getTables()
  if (!tables.some(({ name }) => name === VERSION_TABLE)) return undefined
  return (await db.selectFrom(VERSION_TABLE).select('version').executeTakeFirst())?.version
}
