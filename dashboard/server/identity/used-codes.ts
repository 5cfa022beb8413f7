/** Codes of the second factor that were used: each works once. */
import { createHash } from 'node:crypto'
import type { Clock } from '#platform/clock.ts'
import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/** Longer than a code is accepted: its period of 30 s, and the ones before and after. */
const KEPT_MS = 5 * 60_000

/** @returns false if the person used the code before */
export async function useCode(db: Kysely<Tables>, clock: Clock, userId: string, code: string): Promise<boolean> {
  const now = clock.now()
  await db
    .deleteFrom('headgateUsedCode')
    .where('usedAt', '<', now - KEPT_MS)
    .execute()
  const used = await db
    .insertInto('headgateUsedCode')
    .values({ userId, code: hashOf(code), usedAt: now })
    .onConflict((conflict) => conflict.doNothing())
    .returning('userId')
    .executeTakeFirst()
  return used !== undefined
}

/** Whether the person used the code before. */
export async function isUsed(db: Kysely<Tables>, userId: string, code: string): Promise<boolean> {
  const row = await db
    .selectFrom('headgateUsedCode')
    .select('usedAt')
    .where('userId', '=', userId)
    .where('code', '=', hashOf(code))
    .executeTakeFirst()
  return row !== undefined
}

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('base64url')
}

export async function forgetCodes(db: Kysely<Tables>, userId: string): Promise<void> {
  await db.deleteFrom('headgateUsedCode').where('userId', '=', userId).execute()
}
