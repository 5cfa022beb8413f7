/** Signs people in: by password, by a code after it, and through providers. */
import { randomBytes } from 'node:crypto'
import type { Client } from '../http/exchange.ts'
import type { Reply } from './door.ts'
import type { Identity } from './identity.ts'
import { endNotice, holdNotice } from './notices.ts'
import type { HeldMail } from '../mail/outbox.ts'
import { linkedPath } from './person.ts'
import { emailOf } from './sign-up.ts'
import { mailsOf, WRONG_PASSWORDS } from './throttle.ts'
import { backupCodeOf, plainCode } from './typed-codes.ts'

export type SignIn =
  | { readonly outcome: 'signed-in'; readonly userId: string; readonly cookies: readonly string[] }
  /** The password is right, and a code must follow. */
  | { readonly outcome: 'code'; readonly cookies: readonly string[] }
  /** One answer for a wrong password, an unknown and an unverified address, and too many tries for one address. */
  | { readonly outcome: 'wrong' }

/** Longest text that is checked as a password. */
const MAX_TYPED = 512

export async function signIn(
  identity: Identity,
  client: Client,
  input: { readonly email: unknown; readonly password: unknown },
): Promise<SignIn> {
  const email = emailOf(input.email)
  const { password } = input
  if (email === undefined || typeof password !== 'string' || password === '' || password.length > MAX_TYPED) return { outcome: 'wrong' }
  identity.door.assertWelcome(client, 'POST /sign-in/email')
  const { reply, isLastTry } = await identity.hashes.admit(() => tryPassword(identity, client, email, password))
  if (reply.status !== 200) return await wrong(identity, reply, { email, isLastTry })
  await identity.throttle.clear(WRONG_PASSWORDS, email)
  if (reply.body['twoFactorRedirect'] === true) return { outcome: 'code', cookies: reply.cookies }
  return { outcome: 'signed-in', userId: userIdOf(reply), cookies: reply.cookies }
}

async function tryPassword(
  identity: Identity,
  client: Client,
  email: string,
  password: string,
): Promise<{ reply: Reply; isLastTry: boolean }> {
  return await identity.throttle.counted(WRONG_PASSWORDS, email, async (admission) => {
    // a blocked try takes the same way and the same time, with a password that nobody has
    const tried = admission.isAdmitted ? password : randomBytes(24).toString('base64url')
    const reply = await identity.door.ask(client, 'POST /sign-in/email', { body: { email, password: tried } })
    return { reply, isLastTry: admission.isAdmitted && admission.left === 0 }
  })
}

async function wrong(identity: Identity, { status }: Reply, { email, isLastTry }: { email: string; isLastTry: boolean }): Promise<SignIn> {
  if (status >= 500) throw new Error(`sign-in was answered ${status}`)
  if (isLastTry) await warnOwner(identity, email)
  return { outcome: 'wrong' }
}

/** Tells the owner of an account that somebody tries passwords. */
async function warnOwner(identity: Identity, email: string): Promise<void> {
  const { internalAdapter } = await identity.auth.$context
  const found = await internalAdapter.findUserByEmail(email)
  if (found?.user.emailVerified && (await identity.throttle.take(mailsOf('wrong-passwords'), email)).isAdmitted)
    await identity.mail.queue(email, 'wrong-passwords', { tries: WRONG_PASSWORDS.most, minutes: WRONG_PASSWORDS.windowMs / 60_000 })
}

export type CodeSignIn =
  | { readonly outcome: 'signed-in'; readonly userId: string; readonly cookies: readonly string[] }
  | { readonly outcome: 'wrong' | 'used' }
  /** The first step is too long ago, or had too many wrong codes. */
  | { readonly outcome: 'start-again' }

/** @param kind `app`: six digits; `backup`: one of the ten codes */
export async function signInByCode(identity: Identity, client: Client, code: string, kind: 'app' | 'backup'): Promise<CodeSignIn> {
  const reply =
    kind === 'app'
      ? await identity.door.ask(client, 'POST /two-factor/verify-totp', { body: { code: plainCode(code) } })
      : await identity.door.ask(client, 'POST /two-factor/verify-backup-code', { body: { code: backupCodeOf(code) } })
  if (reply.status === 200) return { outcome: 'signed-in', userId: userIdOf(reply), cookies: reply.cookies }
  if (reply.code === 'ACCOUNT_TEMPORARILY_LOCKED') return { outcome: 'start-again' }
  if (reply.code === 'INVALID_CODE' || reply.code === 'INVALID_BACKUP_CODE') return { outcome: 'wrong' }
  if (reply.code === 'CODE_USED') return { outcome: 'used' }
  if (reply.status < 500) return { outcome: 'start-again' }
  throw new Error(`a code was answered ${reply.status}`)
}

export type ProviderStart =
  { readonly outcome: 'go'; readonly url: string; readonly cookies: readonly string[] } | { readonly outcome: 'unreachable' | 'unknown' }

/** @param next own path to go to afterwards */
export async function startProvider(identity: Identity, client: Client, id: string, next: string): Promise<ProviderStart> {
  if (!identity.settings.providers.some((provider) => provider.id === id)) return { outcome: 'unknown' }
  const { origin } = identity.settings
  const errorCallbackURL = `${origin}/sign-in?provider=${encodeURIComponent(id)}`
  const reply = await identity.door.ask(client, 'POST /sign-in/social', {
    body: { provider: id, callbackURL: `${origin}${next}`, errorCallbackURL },
  })
  const { url } = reply.body
  if (reply.status === 200 && typeof url === 'string') return { outcome: 'go', url, cookies: reply.cookies }
  return { outcome: 'unreachable' } // the library answers 404 until discovery has worked
}

export interface ProviderEnd {
  /** Own path to go on to. */
  readonly path: string
  readonly cookies: readonly string[]
  /** The person who is signed in now; undefined after a failure, before a code, and for a provider that was linked. */
  readonly userId: string | undefined
  /** The person to whom the provider was linked. */
  readonly linkedTo: string | undefined
}

/** The provider sends the person back. */
export async function finishProvider(
  identity: Identity,
  client: Client,
  provider: { readonly id: string; readonly name: string },
  query: Readonly<Record<string, string>>,
): Promise<ProviderEnd> {
  const { id } = provider
  const { origin } = identity.settings
  const linking: { userId: string; readonly letter: HeldMail }[] = []
  const onLink = async (userId: string): Promise<void> =>
    void linking.push({ userId, letter: await holdLinked(identity, userId, provider) })
  const reply = await identity.door.ask(client, `GET /callback/${encodeURIComponent(id)}`, { query, onLink })
  const isLinked = reply.location === `${origin}${linkedPath(id)}`
  for (const { letter } of linking) await endNotice(identity, letter, isLinked)
  const { location, cookies } = reply
  const target = location === undefined ? null : URL.parse(location, origin)
  const isOwn = target !== null && target.origin === origin
  const path = isOwn ? `${target.pathname}${target.search}` : `/sign-in?provider=${encodeURIComponent(id)}&error=failed`
  const made = await identity.sessions.read({ ...client, cookie: cookies.map((line) => line.split(';')[0] ?? '').join('; ') })
  return { path, cookies, userId: made?.person.id, linkedTo: isLinked ? linking[0]?.userId : undefined }
}

/** Stores the mail about a provider that is about to be linked. */
async function holdLinked(
  identity: Identity,
  userId: string,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<HeldMail> {
  const { internalAdapter } = await identity.auth.$context
  const user = await internalAdapter.findUserById(userId)
  if (user === null) throw new Error(`person ${userId} is gone, so no provider can be linked`)
  const parameters = { at: new Date(identity.clock.now()).toISOString(), provider: name }
  return await holdNotice(identity, { userId, part: `provider ${id}`, to: user.email, name: 'provider-linked', parameters })
}

function userIdOf({ body }: Reply): string {
  return (body['user'] as { id: string }).id
}
