/** Asks people for a fresh proof of who they are before a change that would give an account away. */
import type { Client } from '../http/exchange.ts'
import { isPasswordOf } from './credential.ts'
import type { Identity } from './identity.ts'
import type { Session } from './sessions.ts'
import { type ThrottleRule, WRONG_PASSWORDS } from './throttle.ts'

/** How long a sign-in or a proof counts as fresh, ms. */
export const FRESH_MS = 10 * 60_000
/** A code of the authenticator app. Any other code is a backup code. */
const APP_CODE = /^\d{6}$/
/** Wrong codes of one person with a session. */
const WRONG_CODES: ThrottleRule = { name: 'code', most: 10, windowMs: 15 * 60_000 }

/** Whether the person of the session signed in, or proved who it is, within the last ten minutes. */
export async function isFresh({ database: { db }, clock }: Identity, { id, createdMs }: Session): Promise<boolean> {
  const since = clock.now() - FRESH_MS
  if (createdMs > since) return true
  const row = await db.selectFrom('headgateProof').select('provenAt').where('sessionId', '=', id).executeTakeFirst()
  return row !== undefined && Number(row.provenAt) > since
}

/** @returns whether the proof holds @throws Busy */
export async function proveByPassword(identity: Identity, session: Session, password: string): Promise<boolean> {
  const { id, email } = session.person
  if (!identity.settings.hasPasswords) return false
  await identity.throttle.admit(WRONG_PASSWORDS, email)
  if (!(await isPasswordOf(identity, id, password))) return false
  await identity.throttle.clear(WRONG_PASSWORDS, email)
  await remember(identity, session)
  return true
}

/** @returns whether the proof holds @throws Busy */
export async function proveByCode(identity: Identity, client: Client, session: Session, code: string): Promise<boolean> {
  await identity.throttle.admit(WRONG_CODES, session.person.id)
  const typed = code.replace(/\s/g, '')
  const route = APP_CODE.test(typed) ? 'POST /two-factor/verify-totp' : 'POST /two-factor/verify-backup-code'
  const reply = await identity.door.ask(client, route, { body: { code: typed } })
  if (reply.status !== 200) return false
  await identity.throttle.clear(WRONG_CODES, session.person.id)
  await remember(identity, session)
  return true
}

async function remember({ database: { db }, clock }: Identity, { id }: Session): Promise<void> {
  const provenAt = clock.now()
  await db
    .deleteFrom('headgateProof')
    .where('provenAt', '<', provenAt - FRESH_MS)
    .execute()
  await db
    .insertInto('headgateProof')
    .values({ sessionId: id, provenAt })
    .onConflict((conflict) => conflict.column('sessionId').doUpdateSet({ provenAt }))
    .execute()
}
