/** Mails that wait to be sent, in the database. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '#platform/clock.ts'
import type { Kysely } from 'kysely'
import type { ClaimedMail, OutboxRows } from '../mail/outbox.ts'
import type { Tables } from './tables.ts'

export class DatabaseOutbox implements OutboxRows {
  readonly #db: Kysely<Tables>
  readonly #clock: Clock

  constructor(db: Kysely<Tables>, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  async add(sealed: string): Promise<void> {
    const now = this.#clock.now()
    await this.#db.insertInto('headgateOutbox').values({ id: randomUUID(), sealed, attempts: 0, dueAt: now, createdAt: now }).execute()
  }

  async claim(limit: number, leaseMs: number): Promise<readonly ClaimedMail[]> {
    const now = this.#clock.now()
    const due = await this.#db.selectFrom('headgateOutbox').selectAll().where('dueAt', '<=', now).orderBy('dueAt').limit(limit).execute()
    const claimed: ClaimedMail[] = []
    for (const { id, sealed, attempts, createdAt } of due) {
      const { numUpdatedRows } = await this.#db
        .updateTable('headgateOutbox')
        .set({ attempts: attempts + 1, dueAt: now + leaseMs })
        .where('id', '=', id)
        .where('attempts', '=', attempts) // another replica may have claimed the row since
        .executeTakeFirst()
      if (numUpdatedRows === 1n) claimed.push({ id, sealed, attempts: attempts + 1, createdMs: Number(createdAt) })
    }
    return claimed
  }

  async putOff(id: string, delayMs: number): Promise<void> {
    await this.#db
      .updateTable('headgateOutbox')
      .set({ dueAt: this.#clock.now() + delayMs })
      .where('id', '=', id)
      .execute()
  }

  async remove(id: string): Promise<void> {
    await this.#db.deleteFrom('headgateOutbox').where('id', '=', id).execute()
  }

  async waiting(): Promise<number> {
    const { count } = await this.#db
      .selectFrom('headgateOutbox')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    return Number(count)
  }

  async nextDueMs(): Promise<number | undefined> {
    const row = await this.#db
      .selectFrom('headgateOutbox')
      .select(({ fn }) => fn.min('dueAt').as('dueAt'))
      .executeTakeFirst()
    return row?.dueAt === null || row?.dueAt === undefined ? undefined : Number(row.dueAt)
  }
}
