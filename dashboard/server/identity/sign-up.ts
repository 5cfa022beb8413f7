/** Signs people up by address and password. The answer is the same for new and for known addresses. */
import { z } from 'zod'
import { type Client, cookieOf } from '../http/exchange.ts'
import type { EmailError, PasswordError } from '../pages/controls.ts'
import { cookiePrefix } from './auth.ts'
import type { Identity } from './identity.ts'
import { passwordProblem } from './new-password.ts'
import { mailsOf } from './throttle.ts'

export interface Credentials {
  readonly email: string
  readonly password: string
}

export type SignUp =
  /** A mail is on its way, if the address is new or has an account. */
  | { readonly outcome: 'mailed'; readonly cookies: readonly string[] }
  | {
      readonly outcome: 'invalid'
      readonly errors: { readonly email?: EmailError | undefined; readonly password?: PasswordError | undefined }
    }

/** Who signed up in this browser, as far as the browser can prove. */
export interface SignUpProof {
  readonly email: string
  readonly userId: string
}

/** As long as the link of the mail, s. */
const PROOF_SECONDS = 86_400
/** What the identity library takes, too: one plain address of ASCII characters. */
const emailSchema = z.email().max(254)

/** @returns the address in the form that is stored; undefined for a text that is not an address */
export function emailOf(text: unknown): string | undefined {
  const email = typeof text === 'string' ? text.trim().toLowerCase() : ''
  return emailSchema.safeParse(email).success ? email : undefined
}

export async function signUp(
  identity: Identity,
  client: Client,
  input: { readonly email: unknown; readonly password: unknown },
): Promise<SignUp> {
  const email = emailOf(input.email)
  const password = typeof input.password === 'string' ? input.password : ''
  const problem = passwordProblem(password, email ?? '')
  if (email === undefined || problem !== undefined)
    return { outcome: 'invalid', errors: { email: email === undefined ? 'form' : undefined, password: problem } }
  identity.door.assertWelcome(client, 'POST /sign-up/email')
  const reply = await identity.hashes.admit(() =>
    identity.throttle.counted(mailsOf('sign-up'), email, ({ isAdmitted }) =>
      identity.door.ask(client, 'POST /sign-up/email', { body: { email, password, name: '' }, mayMail: isAdmitted }),
    ),
  )
  if (reply.status !== 200) throw new Error(`sign-up was answered ${reply.status} ${reply.code ?? ''}`)
  const { id } = reply.body['user'] as { id: string } // of a known address, a random one
  return { outcome: 'mailed', cookies: [proofCookie(identity, { email, userId: id })] }
}

/** Sends the link again, if this browser signed up. The answer tells nothing about the address. */
export async function sendAgain(
  identity: Identity,
  client: Client,
  email: string,
): Promise<{ readonly isSent: boolean; readonly left: number; readonly retryAfter: number }> {
  return await identity.throttle.counted(mailsOf('sign-up'), email, async (admission) => {
    if (!admission.isAdmitted) return { isSent: false, left: 0, retryAfter: Math.ceil(admission.retryAfterMs / 1_000) }
    await identity.door.ask(client, 'POST /send-verification-email', { body: { email } })
    return { isSent: true, left: admission.left, retryAfter: 60 }
  })
}

function proofName({ settings }: Identity): string {
  return `${cookiePrefix(settings.origin)}.sign_up`
}

function proofCookie(identity: Identity, proof: SignUpProof): string {
  const secure = identity.settings.origin.startsWith('https:') ? '; Secure' : ''
  const value = identity.proofs.seal(JSON.stringify(proof))
  return `${proofName(identity)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${PROOF_SECONDS}${secure}`
}

/** @returns the sign-up of this browser; undefined if there was none */
export function proofOf(identity: Identity, client: Client): SignUpProof | undefined {
  const value = cookieOf(client, proofName(identity))
  const text = value === undefined ? undefined : identity.proofs.open(value)
  return text === undefined ? undefined : (JSON.parse(text) as SignUpProof) // sealed by us
}

/** Removes the proof, which has served its purpose. */
export function endProof(identity: Identity): string {
  const secure = identity.settings.origin.startsWith('https:') ? '; Secure' : ''
  return `${proofName(identity)}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0${secure}`
}
