/** Mails that wait to be sent, in the database. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '#platform/clock.ts'
import type { Kysely } from 'kysely'
import type { ClaimedMail, OutboxRows } from '../mail/outbox.ts'
import type { Tables } from './tables.ts'

/** A mail that is held back until a change is made. */
export interface HeldRow {
  readonly id: string
  readonly sealed: string
  readonly userId: string
  /** How to find out whether the change was made: see notices.ts. */
  readonly held: string
}

/** No time comes: neither this version nor an earlier one sends a held mail. */
const NEVER_MS = Number.MAX_SAFE_INTEGER

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

  async hold(sealed: string, { userId, held }: { readonly userId: string; readonly held: string }): Promise<string> {
    const id = randomUUID()
    const createdAt = this.#clock.now()
    await this.#db
      .insertInto('headgateOutbox')
      .values({ id, sealed, attempts: 0, dueAt: NEVER_MS, createdAt, heldUserId: userId, held })
      .execute()
    return id
  }

  async release(id: string, sealed: string): Promise<void> {
    const now = this.#clock.now()
    await this.#db
      .insertInto('headgateOutbox')
      .values({ id, sealed, attempts: 0, dueAt: now, createdAt: now }) // a sweep may have dropped the row of a process that was paused
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet({ dueAt: now, createdAt: now, heldUserId: null, held: null })
          .where('headgateOutbox.held', 'is not', null),
      )
      .execute()
  }

  /** Deletes a mail that is still held. */
  async drop(id: string): Promise<void> {
    await this.#db.deleteFrom('headgateOutbox').where('id', '=', id).where('held', 'is not', null).execute()
  }

  /** The held mails of a person, or those that have been held for a time. */
  async held(which: { readonly userId: string } | { readonly olderThanMs: number; readonly limit: number }): Promise<readonly HeldRow[]> {
    const held = this.#db.selectFrom('headgateOutbox').select(['id', 'sealed', 'heldUserId', 'held']).where('held', 'is not', null)
    const rows =
      'userId' in which
        ? await held.where('heldUserId', '=', which.userId).execute()
        : await held
            .where('createdAt', '<', this.#clock.now() - which.olderThanMs)
            .limit(which.limit)
            .execute()
    return rows.map((row) => ({ id: row.id, sealed: row.sealed, userId: row.heldUserId ?? '', held: row.held ?? '' }))
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
      .where('held', 'is', null)
      .executeTakeFirstOrThrow()
    return Number(count)
  }

  /** Age of the oldest one, s; 0 without one. */
  async oldestSeconds(): Promise<number> {
    const row = await this.#db
      .selectFrom('headgateOutbox')
      .select(({ fn }) => fn.min('createdAt').as('createdAt'))
      .executeTakeFirst()
    const createdMs = row?.createdAt ?? undefined
    return createdMs === undefined ? 0 : Math.max(0, this.#clock.now() - Number(createdMs)) / 1_000
  }

  async nextDueMs(): Promise<number | undefined> {
    const row = await this.#db
      .selectFrom('headgateOutbox')
      .select(({ fn }) => fn.min('dueAt').as('dueAt'))
      .executeTakeFirst()
    return row?.dueAt === null || row?.dueAt === undefined ? undefined : Number(row.dueAt)
  }
}
