/** Copies a database file into an empty Postgres, once, when more than one replica is wanted. Ids, types and times stay what they are. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { systemClock } from '#platform/clock.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'
import { type Kysely, sql, type Transaction } from 'kysely'
import { createAuth } from './auth.ts'
import { type Database, openDatabase } from './database.ts'
import { bringUpToDate, VERSION_TABLE } from './database-version.ts'
import type { Tables } from './tables.ts'

export interface CopiedTable {
  readonly table: string
  readonly rows: number
}

type Row = Readonly<Record<string, unknown>>

/** Rows of one statement: Postgres takes 65,535 parameters at most. */
const BATCH = 500
/** The rows of all other tables of the library point to this one. */
const FIRST = 'user'
const NO_MAILS = { verify: nothing, known: nothing, reset: nothing, newEmail: nothing }

/**
 * All or nothing: the copy is one transaction.
 * @throws Misconfigured if a database cannot be used, or if the target has rows
 */
export async function copyDatabase(
  from: { readonly file: string },
  to: { readonly url: string },
  log: Log,
): Promise<readonly CopiedTable[]> {
  if (!existsSync(from.file))
    throw new Misconfigured(`DATABASE_FILE: ${from.file} does not exist; set it to the file that the dashboard has used`)
  const source = openDatabase(from, () => undefined)
  const target = openDatabase(to, (error) => log.warn({ error: error.message }, 'a connection to the database ended'))
  try {
    await prepare(source, log)
    await prepare(target, log)
    return await source.db.transaction().execute((reading) => target.db.transaction().execute((writing) => copyTables(reading, writing)))
  } finally {
    await source.db.destroy()
    await target.db.destroy()
  }
}

/** Brings the tables up to date, as a start of the dashboard does. */
async function prepare(database: Database, log: Log): Promise<void> {
  const settings = { origin: 'http://localhost', secret: randomBytes(32).toString('base64url'), providers: [], hasPasswords: true } // no table depends on them
  const { migrate } = createAuth({ settings, database, mails: NO_MAILS, clock: systemClock, log })
  await bringUpToDate(database, migrate)
}

async function copyTables(reading: Transaction<Tables>, writing: Transaction<Tables>): Promise<readonly CopiedTable[]> {
  const targets = await columnsOf(writing)
  const tables = [...(await columnsOf(reading)).keys()].filter((name) => name !== VERSION_TABLE) // each database has its own
  const names = tables.toSorted((a, b) => Number(b === FIRST) - Number(a === FIRST) || a.localeCompare(b))
  const unknown = names.find((name) => !targets.has(name))
  if (unknown !== undefined) throw new Misconfigured(`DATABASE_FILE: its table ${unknown} is of another program or a later version`)
  await sql`lock table ${sql.join(names.map((name) => sql.table(name)))} in access exclusive mode`.execute(writing)
  for (const name of names) await assertEmpty(writing, name)
  const copied: CopiedTable[] = []
  for (const table of names)
    copied.push({ table, rows: await copyRows(reading, writing, { table, types: targets.get(table) ?? new Map() }) })
  return copied
}

/** The types of the columns of each table. */
async function columnsOf(db: Kysely<Tables>): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const tables = await db.introspection.getTables()
  return new Map(tables.map(({ name, columns }) => [name, new Map(columns.map((column) => [column.name, column.dataType]))]))
}

async function assertEmpty(db: Kysely<Tables>, name: string): Promise<void> {
  const { rows } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(db)
  if (rows.length > 0)
    throw new Misconfigured(`DATABASE_URL: its table ${name} has rows, and a copy would mix two databases; set it to an empty database`)
}

async function copyRows(
  reading: Kysely<Tables>,
  writing: Kysely<Tables>,
  { table, types }: { readonly table: string; readonly types: ReadonlyMap<string, string> },
): Promise<number> {
  for (let copied = 0; ;) {
    const { rows } = await sql<Row>`select * from ${sql.table(table)} order by rowid limit ${BATCH} offset ${copied}`.execute(reading)
    const [first] = rows
    if (first === undefined) return copied
    const names = Object.keys(first)
    const values = rows.map((row) => sql`(${sql.join(names.map((name) => valueFor(types.get(name), row[name])))})`)
    const columns = sql.join(names.map((name) => sql.ref(name)))
    await sql`insert into ${sql.table(table)} (${columns}) values ${sql.join(values)}`.execute(writing)
    copied += rows.length
  }
}

/** SQLite has neither booleans nor times: the library stores 0 and 1, and times as text. */
function valueFor(type: string | undefined, value: unknown): unknown {
  if (value === null) return null
  if (type === 'bool') return Boolean(value)
  if (type === 'timestamptz' || type === 'timestamp') return new Date(value as string | number)
  return value
}

async function nothing(): Promise<void> {
  return await Promise.resolve()
}
