/** What the people of accounts were told, in the database. */
import type { Clock } from '#platform/clock.ts'
import { type Kysely, sql, type Transaction } from 'kysely'
import { z } from 'zod'
import { BALANCE_STATES } from '../notifications/balance-state.ts'
import type { Audience, StoredState, Told, ToldChange } from '../notifications/told.ts'
import { DatabaseOutbox } from './database-outbox.ts'
import type { Tables } from './tables.ts'

/** Rows of one statement: SQLite takes 32,766 parameters at most. */
const BATCH = 500

const stateSchema = z.object({
  balance: z.enum(BALANCE_STATES).optional(),
  day: z.int(),
  mails: z.object({ credits: z.int(), balance: z.int(), keys: z.int() }),
})

/** Ends a transaction: what it has stored so far is undone. */
class Overtaken extends Error {}

export class DatabaseTold implements Told {
  readonly #db: Kysely<Tables>
  readonly #clock: Clock

  constructor(db: Kysely<Tables>, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  async audience(account: string): Promise<Audience | undefined> {
    const { rows } = await sql<{ email: string; createdAt: number | string }>`
      select "user"."email" as "email", "headgateMember"."createdAt" as "createdAt" from "headgateMember"
      join "user" on "user"."id" = "headgateMember"."userId"
      where "headgateMember"."accountName" = ${account} and "headgateMember"."deletingAt" is null and "user"."emailVerified"`.execute(
      this.#db,
    )
    if (rows.length === 0) return undefined
    return { addresses: rows.map(({ email }) => email), sinceMs: Math.min(...rows.map(({ createdAt }) => Number(createdAt))) }
  }

  async state(account: string): Promise<StoredState | undefined> {
    const row = await this.#db.selectFrom('headgateToldState').selectAll().where('accountName', '=', account).executeTakeFirst()
    return row && { revision: row.revision, state: stateSchema.parse(JSON.parse(row.state)) }
  }

  async among(account: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    for (const batch of batches(ids)) {
      const rows = await this.#db
        .selectFrom('headgateTold')
        .select('id')
        .where('accountName', '=', account)
        .where('id', 'in', batch)
        .execute()
      for (const { id } of rows) found.add(id)
    }
    return found
  }

  async beginningWith(account: string, prefix: string): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom('headgateTold')
      .select(['id', 'toldAt'])
      .where('accountName', '=', account)
      .where('id', 'like', `${prefix}%`)
      .execute()
    return new Map(rows.map(({ id, toldAt }) => [id, Number(toldAt)]))
  }

  async store(change: ToldChange): Promise<boolean> {
    try {
      await this.#db.transaction().execute((transaction) => this.#storeIn(transaction, change))
      return true
    } catch (error) {
      if (error instanceof Overtaken) return false
      throw error
    }
  }

  /** The state first: its row holds back another replica until this one has ended. */
  async #storeIn(db: Transaction<Tables>, change: ToldChange): Promise<void> {
    const { account, told, forgotten, mails } = change
    if ((await storeState(db, change)) !== 1n) throw new Overtaken()
    const toldAt = this.#clock.now()
    for (const batch of batches(told))
      await db
        .insertInto('headgateTold')
        .values(batch.map((id) => ({ accountName: account, id, toldAt })))
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    for (const batch of batches(forgotten))
      await db.deleteFrom('headgateTold').where('accountName', '=', account).where('id', 'in', batch).execute()
    const outbox = new DatabaseOutbox(db, this.#clock)
    for (const sealed of mails) await outbox.add(sealed)
  }

  async withoutState(): Promise<readonly string[]> {
    const { rows } = await sql<{ accountName: string }>`
      select "headgateMember"."accountName" as "accountName" from "headgateMember"
      left join "headgateToldState" on "headgateToldState"."accountName" = "headgateMember"."accountName"
      where "headgateToldState"."accountName" is null`.execute(this.#db)
    return rows.map(({ accountName }) => accountName)
  }

  async sweep(prefix: string, olderThanMs: number): Promise<void> {
    await this.#db
      .deleteFrom('headgateTold')
      .where('id', 'like', `${prefix}%`)
      .where('toldAt', '<', this.#clock.now() - olderThanMs)
      .execute()
    for (const table of ['headgateTold', 'headgateToldState'] as const)
      await sql`delete from ${sql.table(table)} where "accountName" not in (select "accountName" from "headgateMember")`.execute(this.#db)
  }
}

/** @returns 1n, or 0n if another replica was first */
async function storeState(db: Transaction<Tables>, { account, revision, state }: ToldChange): Promise<bigint | undefined> {
  const values = { accountName: account, revision: (revision ?? 0) + 1, state: JSON.stringify(state) }
  if (revision === undefined) {
    const insert = db.insertInto('headgateToldState').values(values)
    const { numInsertedOrUpdatedRows } = await insert
      .onConflict((conflict) => conflict.column('accountName').doNothing())
      .executeTakeFirstOrThrow()
    return numInsertedOrUpdatedRows
  }
  const update = db.updateTable('headgateToldState').set(values).where('accountName', '=', account).where('revision', '=', revision)
  return (await update.executeTakeFirstOrThrow()).numUpdatedRows
}

function batches<T>(all: readonly T[]): readonly T[][] {
  return Array.from({ length: Math.ceil(all.length / BATCH) }, (_, at) => all.slice(at * BATCH, (at + 1) * BATCH))
}
