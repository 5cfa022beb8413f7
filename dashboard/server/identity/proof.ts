/** Asks people for a fresh proof of who they are before a change that would give an account away. */
import type { Client } from '../http/exchange.ts'
import { Busy } from './door.ts'
import type { Identity } from './identity.ts'
import type { Person, Session } from './sessions.ts'
import { type ThrottleRule, WRONG_PASSWORDS } from './throttle.ts'

/** How long a sign-in or a proof counts as fresh, ms. */
export const FRESH_MS = 10 * 60_000
/** Wrong codes of one person with a session. */
const WRONG_CODES: ThrottleRule = { name: 'code', most: 10, windowMs: 15 * 60_000 }

/** Whether the person of the session signed in, or proved who it is, within the last ten minutes. */
export async function isFresh({ database: { db }, clock }: Identity, { id, createdMs }: Session): Promise<boolean> {
  const since = clock.now() - FRESH_MS
  if (createdMs > since) return true
  const row = await db.selectFrom('headgateProof').select('provenAt').where('sessionId', '=', id).executeTakeFirst()
  return row !== undefined && Number(row.provenAt) > since
}

/** Whether the text is the password of the person. Wrong ones are counted. @throws Busy after too many */
async function isPassword(identity: Identity, { id, email }: Person, password: string): Promise<boolean> {
  const admission = await identity.throttle.take(WRONG_PASSWORDS, email)
  if (!admission.isAdmitted) throw new Busy(429, Math.ceil(admission.retryAfterMs / 1_000))
  const context = await identity.auth.$context
  const account = (await context.internalAdapter.findAccounts(id)).find(({ providerId }) => providerId === 'credential')
  if (!(await context.password.verify({ hash: account?.password ?? '', password }))) return false
  await identity.throttle.clear(WRONG_PASSWORDS, email)
  return true
}

/** @returns whether the proof holds @throws Busy */
export async function proveByPassword(identity: Identity, session: Session, password: string): Promise<boolean> {
  if (!identity.settings.hasPasswords || !(await isPassword(identity, session.person, password))) return false
  await remember(identity, session)
  return true
}

/** @returns whether the proof holds @throws Busy */
export async function proveByCode(identity: Identity, client: Client, session: Session, code: string): Promise<boolean> {
  const admission = await identity.throttle.take(WRONG_CODES, session.person.id)
  if (!admission.isAdmitted) throw new Busy(429, Math.ceil(admission.retryAfterMs / 1_000))
  const reply = await identity.door.ask(client, 'POST /two-factor/verify-totp', { body: { code: code.replace(/\s/g, '') } })
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
