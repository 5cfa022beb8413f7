/**
 * Verifies addresses by the links of mails. A link alone proves only that its mail was read: an attacker who signed up with a stranger's address waits
 * for the owner to open the link. So the link verifies in the browser that signed up, and with the password of the sign-up; anywhere else it leads
 * to a new password.
 */
import { verifyJWT } from 'better-auth/crypto'
import { z } from 'zod'
import type { Client } from '../http/exchange.ts'
import type { PasswordError } from '../pages/controls.ts'
import { deleteUnverified, endLinks } from './auth.ts'
import { isPasswordOf } from './credential.ts'
import type { Identity } from './identity.ts'
import { passwordProblem } from './new-password.ts'
import { withNotice } from './notices.ts'
import { endProof, proofOf } from './sign-up.ts'
import { WRONG_PASSWORDS } from './throttle.ts'

const linkSchema = z.object({ email: z.string(), userId: z.string(), updateTo: z.string().optional(), requestType: z.string().optional() })

/** What a link can do in this browser. */
export type LinkState =
  | { readonly state: 'ready'; readonly email: string; readonly userId: string }
  | { readonly state: 'other-browser'; readonly email: string; readonly userId: string }
  /** A change of address, asked for by the person of this session. */
  | { readonly state: 'change'; readonly email: string; readonly from: string; readonly userId: string }
  /** The same, without the session that the link needs. */
  | { readonly state: 'sign-in-first'; readonly email: string }
  /** Too old, used, replaced or no link at all. */
  | { readonly state: 'dead' }

export type Verification =
  | { readonly outcome: 'verified'; readonly userId: string; readonly cookies: readonly string[] }
  | {
      readonly outcome: 'changed'
      readonly userId: string
      readonly from: string
      readonly email: string
      readonly cookies: readonly string[]
    }
  | { readonly outcome: 'invalid'; readonly problem: PasswordError }
  | { readonly outcome: 'wrong-password' }
  | { readonly outcome: 'refused'; readonly link: LinkState }

/** The person's choice in a browser that did not sign up. */
export interface OtherBrowser {
  /** `new`: the password replaces the one of the sign-up. `known`: it must be the one of the sign-up. */
  readonly kind: 'new' | 'known'
  readonly password: string
}

export async function readLink(identity: Identity, client: Client, token: string): Promise<LinkState> {
  const link = linkSchema.safeParse(await verifyJWT(token, identity.settings.secret))
  if (!link.success) return { state: 'dead' }
  const { email, userId, updateTo } = link.data
  const { internalAdapter } = await identity.auth.$context
  const user = await internalAdapter.findUserById(userId)
  if (!user || user.email !== email) return { state: 'dead' }
  if (updateTo !== undefined) {
    const session = await identity.sessions.read(client)
    return session?.person.id === userId
      ? { state: 'change', email: updateTo, from: email, userId }
      : { state: 'sign-in-first', email: updateTo }
  }
  return signUpLink(identity, client, user)
}

function signUpLink(
  identity: Identity,
  client: Client,
  { id: userId, email, emailVerified }: { readonly id: string; readonly email: string; readonly emailVerified: boolean },
): LinkState {
  if (emailVerified || !identity.settings.hasPasswords) return { state: 'dead' }
  return { state: proofOf(identity, client)?.userId === userId ? 'ready' : 'other-browser', email, userId }
}

export async function verify(
  identity: Identity,
  client: Client,
  { token, other }: { readonly token: string; readonly other?: OtherBrowser | undefined },
): Promise<Verification> {
  const link = await readLink(identity, client, token)
  if (link.state === 'ready') return await confirm(identity, client, link)
  if (link.state === 'change') return await change(identity, client, token, link)
  if (link.state !== 'other-browser' || other === undefined) return { outcome: 'refused', link }
  const problem = other.kind === 'new' ? passwordProblem(other.password, link.email) : undefined
  if (problem !== undefined) return { outcome: 'invalid', problem }
  if (other.kind === 'known' && !(await isPasswordOfSignUp(identity, link, other.password))) return { outcome: 'wrong-password' }
  if (other.kind === 'new') await replacePassword(identity, link.userId, other.password)
  return await confirm(identity, client, link)
}

/** One statement verifies exactly the row that the link names: the sweep or another sign-up may delete or replace the row at the same moment. */
async function confirm(
  identity: Identity,
  client: Client,
  { userId, email }: { readonly userId: string; readonly email: string },
): Promise<Verification> {
  const { adapter } = await identity.auth.$context
  const verified = await adapter.updateMany({
    model: 'user',
    where: [
      { field: 'id', value: userId },
      { field: 'email', value: email },
      { field: 'emailVerified', value: false },
    ],
    update: { emailVerified: true, updatedAt: new Date(identity.clock.now()) },
  })
  if (verified === 0) return { outcome: 'refused', link: { state: 'dead' } }
  const reply = await identity.door.ask(client, 'POST /headgate/first-session', { verified: userId })
  if (reply.status !== 200) throw new Error(`the first session was answered ${reply.status} ${reply.code ?? ''}`)
  return { outcome: 'verified', userId, cookies: [...reply.cookies, endProof(identity)] }
}

async function change(
  identity: Identity,
  client: Client,
  token: string,
  { email, from, userId }: { readonly email: string; readonly from: string; readonly userId: string },
): Promise<Verification> {
  const { internalAdapter } = await identity.auth.$context
  await deleteUnverified(() => identity.auth.$context, email) // a stranger may have signed up since
  if (await internalAdapter.findUserByEmail(email)) return { outcome: 'refused', link: { state: 'dead' } }
  const parameters = { at: new Date(identity.clock.now()).toISOString(), newAddress: email }
  const reply = await withNotice(
    identity,
    { userId, part: 'email', to: from, name: 'address-changed', parameters },
    async () => {
      await identity.members.beginEmailChange(userId)
      return await identity.door.ask(client, 'GET /verify-email', { query: { token } })
    },
    ({ status }) => status === 200,
  )
  if (reply.status !== 200) return { outcome: 'refused', link: { state: 'dead' } }
  await endLinks(() => identity.auth.$context, userId) // a link to a new password may wait in the former mailbox
  return { outcome: 'changed', userId, from, email, cookies: reply.cookies }
}

async function isPasswordOfSignUp(
  identity: Identity,
  { userId, email }: { readonly userId: string; readonly email: string },
  password: string,
): Promise<boolean> {
  if (!(await identity.throttle.take(WRONG_PASSWORDS, email)).isAdmitted) return false
  const isRight = await isPasswordOf(identity, userId, password)
  if (isRight) await identity.throttle.clear(WRONG_PASSWORDS, email)
  return isRight
}

/** Before the verification, so that the former password never opens a verified account. */
async function replacePassword(identity: Identity, userId: string, password: string): Promise<void> {
  const context = await identity.auth.$context
  await context.internalAdapter.updatePassword(userId, await context.password.hash(password))
  await context.internalAdapter.deleteUserSessions(userId)
}
