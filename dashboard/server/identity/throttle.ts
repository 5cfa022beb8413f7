/** Counts per address or person, in the database, so that all replicas share them: wrong passwords, mails, codes. */
import { createHash } from 'node:crypto'
import type { Clock } from '#platform/clock.ts'
import { type Kysely, sql } from 'kysely'
import { Busy } from './busy.ts'
import type { Tables } from './tables.ts'

export interface ThrottleRule {
  /** Part of the key, and the label of metrics. */
  readonly name: string
  readonly most: number
  readonly windowMs: number
  /** Least time between two, ms. */
  readonly everyMs?: number
}

export type Admission =
  | { readonly isAdmitted: true; readonly left: number }
  /** @property retryAfterMs time until the next one is admitted */
  | { readonly isAdmitted: false; readonly retryAfterMs: number }

/** Wrong passwords for one address, from all sources together. */
export const WRONG_PASSWORDS: ThrottleRule = { name: 'password', most: 10, windowMs: 15 * 60_000 }
/** Mails of one kind to one address. */
export const mailsOf = (kind: string): ThrottleRule => ({ name: `mail-${kind}`, most: 5, windowMs: 24 * 3_600_000, everyMs: 60_000 })

/** Wait after a refusal whose reason has just ended. */
const RETRY_MS = 1_000

export class Throttle {
  readonly #db: Kysely<Tables>
  readonly #clock: Clock

  constructor(db: Kysely<Tables>, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  /** Counts one event if the rule admits the event. The count is atomic: concurrent calls never exceed the rule. */
  async take(rule: ThrottleRule, subject: string): Promise<Admission> {
    const now = this.#clock.now()
    const key = keyOf(rule, subject)
    const taken = await this.#db
      .insertInto('headgateThrottle')
      .values({ key, count: 1, startedAt: now, lastAt: now })
      .onConflict((conflict) =>
        conflict
          .column('key')
          .doUpdateSet({
            count: sql<number>`case when "headgateThrottle"."startedAt" <= ${now - rule.windowMs} then 1 else "headgateThrottle"."count" + 1 end`,
            startedAt: sql<number>`case when "headgateThrottle"."startedAt" <= ${now - rule.windowMs} then ${now} else "headgateThrottle"."startedAt" end`,
            lastAt: now,
          })
          .where((row) =>
            row.or([
              row('headgateThrottle.startedAt', '<=', now - rule.windowMs),
              row.and([
                row('headgateThrottle.count', '<', rule.most),
                // without a pause between two, the clock of another replica, which may be ahead, must not matter
                ...(rule.everyMs === undefined ? [] : [row('headgateThrottle.lastAt', '<=', now - rule.everyMs)]),
              ]),
            ]),
          ),
      )
      .returning('count')
      .executeTakeFirst()
    if (taken) return { isAdmitted: true, left: rule.most - taken.count }
    const seen = await this.look(rule, subject)
    return seen.isAdmitted ? { isAdmitted: false, retryAfterMs: rule.everyMs ?? RETRY_MS } : seen // not counted, so never admitted
  }

  /** Runs `task` with the answer of `take`. A task that throws met a trouble of ours, and is not counted. */
  async counted<T>(rule: ThrottleRule, subject: string, task: (admission: Admission) => Promise<T>): Promise<T> {
    const admission = await this.take(rule, subject)
    try {
      return await task(admission)
    } catch (error) {
      if (admission.isAdmitted) await this.#giveBack(rule, subject).catch(() => undefined) // the trouble may be that of the database
      throw error
    }
  }

  async #giveBack(rule: ThrottleRule, subject: string): Promise<void> {
    await this.#db
      .updateTable('headgateThrottle')
      .set({ count: sql<number>`"count" - 1`, lastAt: 0 })
      .where('key', '=', keyOf(rule, subject))
      .execute()
  }

  /** `take` for a route that refuses at the limit. @throws Busy */
  async admit(rule: ThrottleRule, subject: string): Promise<void> {
    const admission = await this.take(rule, subject)
    if (!admission.isAdmitted) throw new Busy(429, Math.ceil(admission.retryAfterMs / 1_000))
  }

  /** What `take` would answer, without counting. */
  async look(rule: ThrottleRule, subject: string): Promise<Admission> {
    const now = this.#clock.now()
    const row = await this.#db.selectFrom('headgateThrottle').selectAll().where('key', '=', keyOf(rule, subject)).executeTakeFirst()
    const endsAt = Number(row?.startedAt ?? 0) + rule.windowMs
    if (row === undefined || endsAt <= now) return { isAdmitted: true, left: rule.most }
    if (row.count >= rule.most) return { isAdmitted: false, retryAfterMs: endsAt - now }
    const nextAt = Number(row.lastAt) + (rule.everyMs ?? 0)
    return nextAt > now ? { isAdmitted: false, retryAfterMs: nextAt - now } : { isAdmitted: true, left: rule.most - row.count }
  }

  async clear(rule: ThrottleRule, subject: string): Promise<void> {
    await this.#db.deleteFrom('headgateThrottle').where('key', '=', keyOf(rule, subject)).execute()
  }

  /** Deletes what no rule needs any more. */
  async sweep(olderThanMs: number): Promise<void> {
    await this.#db
      .deleteFrom('headgateThrottle')
      .where('startedAt', '<', this.#clock.now() - olderThanMs)
      .execute()
  }
}

/** The subject is hashed: a table of counts needs no list of addresses. */
function keyOf({ name }: ThrottleRule, subject: string): string {
  return `${name}:${createHash('sha256').update(subject).digest('base64url')}`
}
