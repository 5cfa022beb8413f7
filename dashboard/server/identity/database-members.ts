/** Who belongs to which Account, in the database. */
import type { Clock } from '#platform/clock.ts'
import { type Kysely, sql } from 'kysely'
import type { Member, Members } from '../accounts/members.ts'
import type { MemberRow, Tables } from './tables.ts'

export class DatabaseMembers implements Members {
  readonly #db: Kysely<Tables>
  readonly #clock: Clock

  constructor(db: Kysely<Tables>, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  async of(userId: string): Promise<Member | undefined> {
    const row = await this.#db.selectFrom('headgateMember').selectAll().where('userId', '=', userId).executeTakeFirst()
    return row && memberOf(row)
  }

  async areTaken(accountNames: readonly string[]): Promise<ReadonlySet<string>> {
    if (accountNames.length === 0) return new Set()
    const rows = await this.#db.selectFrom('headgateMember').select('accountName').where('accountName', 'in', accountNames).execute()
    return new Set(rows.map(({ accountName }) => accountName))
  }

  async add(userId: string, accountName: string, exists: boolean): Promise<Member | undefined> {
    const now = this.#clock.now()
    // one statement, so that a person who is deleted at the same moment leaves no membership, and no Account is made for nobody
    await sql`
      insert into "headgateMember" ("userId", "accountName", "role", "confirmedAt", "createdAt")
      select "id", ${accountName}, 'owner', cast(${exists ? now : null} as bigint), cast(${now} as bigint)
      from "user" where "id" = ${userId} and "emailVerified" on conflict do nothing`.execute(this.#db)
    return await this.of(userId)
  }

  async confirm(userId: string): Promise<void> {
    await this.#db
      .updateTable('headgateMember')
      .set({ confirmedAt: this.#clock.now() })
      .where('userId', '=', userId)
      .where('confirmedAt', 'is', null)
      .execute()
  }

  async beginDeletion(userId: string): Promise<void> {
    await this.#db.updateTable('headgateMember').set({ deletingAt: this.#clock.now() }).where('userId', '=', userId).execute()
  }

  async beginEmailChange(userId: string): Promise<void> {
    await this.#db.updateTable('headgateMember').set({ emailDueAt: this.#clock.now() }).where('userId', '=', userId).execute()
  }

  async endEmailChange(userId: string): Promise<void> {
    await this.#db.updateTable('headgateMember').set({ emailDueAt: null }).where('userId', '=', userId).execute()
  }

  async remove(userId: string): Promise<void> {
    await this.#db.deleteFrom('headgateMember').where('userId', '=', userId).execute()
  }

  async without(limit: number): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>`
      select "user"."id" from "user" left join "headgateMember" on "headgateMember"."userId" = "user"."id"
      where "headgateMember"."userId" is null and "user"."emailVerified" limit ${limit}`.execute(this.#db)
    return rows.map(({ id }) => id)
  }

  /** How many people the sweep would look at. */
  async pending(): Promise<number> {
    const { rows } = await sql<{ count: number | string }>`
      select count(*) as count from "user" left join "headgateMember" on "headgateMember"."userId" = "user"."id"
      where (case when "headgateMember"."userId" is null then "user"."emailVerified"
        else "headgateMember"."confirmedAt" is null or "headgateMember"."deletingAt" is not null or "headgateMember"."emailDueAt" is not null end)`.execute(
      this.#db,
    )
    return Number(rows[0]?.count ?? 0)
  }

  async unfinished(limit: number): Promise<readonly Member[]> {
    const rows = await this.#db
      .selectFrom('headgateMember')
      .selectAll()
      .where((row) => row.or([row('confirmedAt', 'is', null), row('deletingAt', 'is not', null), row('emailDueAt', 'is not', null)]))
      .limit(limit)
      .execute()
    return rows.map(memberOf)
  }
}

function memberOf({ userId, accountName, confirmedAt, deletingAt, emailDueAt }: MemberRow): Member {
  return {
    userId,
    accountName,
    role: 'owner',
    isConfirmed: confirmedAt !== null,
    isDeleting: deletingAt !== null,
    isEmailDue: emailDueAt !== null,
  }
}
