/** New passwords by a link in a mail. The answer is the same for known and unknown addresses. */
import type { Client } from '../http/exchange.ts'
import type { PasswordError } from '../pages/controls.ts'
import type { Identity } from './identity.ts'
import { passwordProblem } from './new-password.ts'
import { withNotice } from './notices.ts'
import { emailOf } from './sign-up.ts'
import { mailsOf, WRONG_PASSWORDS } from './throttle.ts'

export type ResetRequest = { readonly outcome: 'mailed'; readonly email: string } | { readonly outcome: 'invalid' }

export async function requestReset(identity: Identity, client: Client, input: unknown): Promise<ResetRequest> {
  const email = emailOf(input)
  if (email === undefined) return { outcome: 'invalid' }
  identity.door.assertWelcome(client, 'POST /request-password-reset')
  await identity.throttle.counted(mailsOf('reset'), email, ({ isAdmitted }) =>
    identity.door.ask(client, 'POST /request-password-reset', { body: { email }, mayMail: isAdmitted }),
  )
  return { outcome: 'mailed', email }
}

/** The person whose password a link can set. */
interface ResetLink {
  readonly userId: string
  readonly email: string
}

/** @returns undefined for a link that does not work */
export async function readResetLink({ auth, clock }: Identity, token: string): Promise<ResetLink | undefined> {
  const { internalAdapter } = await auth.$context
  const row = await internalAdapter.findVerificationValue(`reset-password:${token}`)
  if (!row || row.expiresAt.getTime() <= clock.now()) return undefined
  const user = await internalAdapter.findUserById(row.value)
  return user === null ? undefined : { userId: user.id, email: user.email }
}

export type Reset =
  | { readonly outcome: 'set'; readonly email: string }
  | { readonly outcome: 'invalid'; readonly email: string; readonly problem: PasswordError }
  | { readonly outcome: 'dead' }

/** Sets the password and ends all sessions. The link proves the address, too. */
export async function reset(identity: Identity, client: Client, token: string, password: string): Promise<Reset> {
  const link = await readResetLink(identity, token)
  if (link === undefined) return { outcome: 'dead' }
  const { userId, email } = link
  const problem = passwordProblem(password, email)
  if (problem !== undefined) return { outcome: 'invalid', email, problem }
  const parameters = { at: new Date(identity.clock.now()).toISOString() }
  const reply = await withNotice(
    identity,
    { userId, part: 'password', to: email, name: 'password-changed', parameters },
    () => identity.door.ask(client, 'POST /reset-password', { body: { token, newPassword: password } }),
    ({ status }) => status === 200,
  )
  if (reply.status !== 200) return { outcome: 'dead' }
  await identity.throttle.clear(WRONG_PASSWORDS, email)
  return { outcome: 'set', email }
}
