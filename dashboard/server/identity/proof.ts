/** Asks people for a fresh proof of who they are before a change that would give an account away. */
import type { Client } from '../http/exchange.ts'
import { hasPassword, isPasswordOf } from './credential.ts'
import type { Identity } from './identity.ts'
import type { Session } from './sessions.ts'
import { type ThrottleRule, WRONG_PASSWORDS } from './throttle.ts'
import { backupCodeOf, plainCode } from './typed-codes.ts'

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

/** What a person gives to prove who it is. */
export interface Proof {
  readonly password: string
  /** A code of the authenticator app, or a backup code: with two-factor on. */
  readonly code: string | undefined
}

/** `wrong-…`: the first part that does not hold. `sign-in`: nothing that the person can type is a proof; a new sign-in is. */
export type Proving = 'proven' | 'wrong-password' | 'wrong-code' | 'sign-in'

/**
 * Asks for what a sign-in asks for: the password, and with two-factor on the code after it. A thief who has a session and knows the password could
 * otherwise turn two-factor off. A person without a password signs in again through the provider, where the code follows, too.
 * @throws Busy
 */
export async function prove(identity: Identity, client: Client, session: Session, { password, code }: Proof): Promise<Proving> {
  const { person } = session
  if (!identity.settings.hasPasswords || !(await hasPassword(identity, person.id))) return 'sign-in'
  if (!(await isRightPassword(identity, session, password))) return 'wrong-password'
  if (person.hasTwoFactor && !(await isRightCode(identity, client, session, code ?? ''))) return 'wrong-code'
  await identity.throttle.clear(WRONG_PASSWORDS, person.email)
  await remember(identity, session)
  return 'proven'
}

/** Counts before it looks, so that tries at the same moment never exceed the rule. The count ends with the whole proof alone. */
async function isRightPassword(identity: Identity, { person }: Session, password: string): Promise<boolean> {
  await identity.throttle.admit(WRONG_PASSWORDS, person.email)
  return await isPasswordOf(identity, person.id, password)
}

/** The library takes a code once, by whatever way the code comes. */
async function isRightCode(identity: Identity, client: Client, { person }: Session, code: string): Promise<boolean> {
  const typed = plainCode(code)
  await identity.throttle.admit(WRONG_CODES, person.id)
  const { status } = APP_CODE.test(typed)
    ? await identity.door.ask(client, 'POST /two-factor/verify-totp', { body: { code: typed } })
    : await identity.door.ask(client, 'POST /two-factor/verify-backup-code', { body: { code: backupCodeOf(typed) } })
  if (status === 200) await identity.throttle.clear(WRONG_CODES, person.id)
  return status === 200
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
