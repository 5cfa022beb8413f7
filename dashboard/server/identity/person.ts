/** What people change about themselves. The caller has checked the session, and its freshness where a change needs it. */
import type { Client } from '../http/exchange.ts'
import type { PasswordError } from '../pages/controls.ts'
import type { Reply } from './door.ts'
import { deleteUnverified, endLinks } from './auth.ts'
import { CREDENTIAL, hasPassword } from './credential.ts'
import type { Identity } from './identity.ts'
import { passwordProblem } from './new-password.ts'
import { endNotices, withNotice } from './notices.ts'
import { MAX_NAME } from './providers.ts'
import type { Person } from './sessions.ts'
import { emailOf } from './sign-up.ts'
import { mailsOf, type ThrottleRule, WRONG_PASSWORDS } from './throttle.ts'
import { plainCode } from './typed-codes.ts'
import { forgetCodes } from './used-codes.ts'

/** Of one person, to any addresses: each is a mail to somebody who may be a stranger. */
const ADDRESS_CHANGES: ThrottleRule = { name: 'address-change', most: 10, windowMs: 24 * 3_600_000 }

/** @returns false for a name that cannot be stored */
export async function rename({ auth }: Identity, { id }: Person, name: string): Promise<boolean> {
  const trimmed = name.trim()
  // eslint-disable-next-line no-control-regex -- control characters are what is refused
  if (Array.from(trimmed).length > MAX_NAME || /[\u0000-\u001f\u007f]/.test(trimmed)) return false
  await (await auth.$context).internalAdapter.updateUser(id, { name: trimmed })
  return true
}

/** How a person signs in beside the providers of the settings. */
export async function signInMethods(
  { auth, settings }: Identity,
  { id }: Person,
): Promise<{
  readonly hasPassword: boolean
  readonly linked: ReadonlyMap<string, string>
  readonly backupCodesLeft: number | undefined
}> {
  const { internalAdapter, adapter } = await auth.$context
  const rows = await internalAdapter.findAccounts(id)
  const factor = await adapter.findOne<{ verified?: boolean }>({ model: 'twoFactor', where: [{ field: 'userId', value: id }] })
  const codes = factor && factor.verified !== false ? await auth.api.viewBackupCodes({ body: { userId: id } }) : undefined
  return {
    hasPassword: settings.hasPasswords && rows.some(({ providerId }) => providerId === CREDENTIAL),
    linked: new Map(rows.map(({ providerId, createdAt }) => [providerId, createdAt.toISOString()])),
    backupCodesLeft: codes?.backupCodes.length,
  }
}

/** Mails a link to the new address. The answer never tells whether the address has an account. */
export async function changeEmail(
  identity: Identity,
  client: Client,
  { person, input }: { readonly person: Person; readonly input: unknown },
): Promise<{ readonly outcome: 'mailed' } | { readonly outcome: 'invalid' }> {
  const email = emailOf(input)
  if (email === undefined) return { outcome: 'invalid' }
  await identity.throttle.admit(ADDRESS_CHANGES, person.id)
  const reply = await identity.throttle.counted(mailsOf('new-address'), email, async ({ isAdmitted }) => {
    if (isAdmitted) await deleteUnverified(() => identity.auth.$context, email) // the library mails no link to an address that has a row
    return await identity.door.ask(client, 'POST /change-email', { body: { newEmail: email }, mayMail: isAdmitted })
  })
  return reply.status === 200 || reply.status === 400 ? { outcome: 'mailed' } : failed(reply)
}

export type PasswordChange =
  | { readonly outcome: 'changed'; readonly cookies: readonly string[] }
  | { readonly outcome: 'wrong' }
  | { readonly outcome: 'invalid'; readonly problem: PasswordError }

/** Changes the password and ends all other sessions. */
export async function changePassword(
  identity: Identity,
  client: Client,
  person: Person,
  change: { readonly current: string; readonly next: string },
): Promise<PasswordChange> {
  const problem = passwordProblem(change.next, person.email)
  if (problem !== undefined) return { outcome: 'invalid', problem }
  await identity.throttle.admit(WRONG_PASSWORDS, person.email)
  return await passwordNoticed(identity, person, () => replacePassword(identity, client, person, change))
}

function passwordNoticed(identity: Identity, { id, email }: Person, change: () => Promise<PasswordChange>): Promise<PasswordChange> {
  const notice = { userId: id, part: 'password', to: email, name: 'password-changed', parameters: { at: nowText(identity) } } as const
  return withNotice(identity, notice, change, ({ outcome }) => outcome === 'changed')
}

async function replacePassword(
  identity: Identity,
  client: Client,
  person: Person,
  { current, next }: { readonly current: string; readonly next: string },
): Promise<PasswordChange> {
  const body = { currentPassword: current, newPassword: next, revokeOtherSessions: true }
  const reply = await identity.door.ask(client, 'POST /change-password', { body })
  if (reply.code === 'INVALID_PASSWORD' || reply.code === 'CREDENTIAL_ACCOUNT_NOT_FOUND') return { outcome: 'wrong' }
  if (reply.status !== 200) return failed(reply)
  await identity.throttle.clear(WRONG_PASSWORDS, person.email)
  await endLinks(() => identity.auth.$context, person.id)
  return { outcome: 'changed', cookies: reply.cookies }
}

/** Gives a password to a person who has signed in through providers only, and ends all other sessions. */
export async function setFirstPassword(identity: Identity, client: Client, person: Person, password: string): Promise<PasswordChange> {
  const problem = passwordProblem(password, person.email)
  if (problem !== undefined) return { outcome: 'invalid', problem }
  if (await hasPassword(identity, person.id)) return { outcome: 'wrong' }
  const context = await identity.auth.$context
  return await passwordNoticed(identity, person, async () => {
    await context.internalAdapter.linkAccount({
      userId: person.id,
      providerId: CREDENTIAL,
      accountId: person.id,
      password: await context.password.hash(password),
    })
    return await replacePassword(identity, client, person, { current: password, next: password }) // for the new id of the session, too
  })
}

/** Where a browser goes on to after a provider was linked. */
export function linkedPath(provider: string): string {
  return `/settings?linked=${encodeURIComponent(provider)}`
}

/** @returns where to send the browser */
export async function linkProvider(
  identity: Identity,
  client: Client,
  id: string,
): Promise<{ readonly outcome: 'go'; readonly url: string; readonly cookies: readonly string[] } | { readonly outcome: 'unreachable' }> {
  const { origin } = identity.settings
  const body = {
    provider: id,
    callbackURL: `${origin}${linkedPath(id)}`,
    errorCallbackURL: `${origin}/settings?provider=${encodeURIComponent(id)}`,
  }
  const reply = await identity.door.ask(client, 'POST /link-social', { body })
  const { url } = reply.body
  if (reply.status === 200 && typeof url === 'string') return { outcome: 'go', url, cookies: reply.cookies }
  return { outcome: 'unreachable' }
}

/** @returns false for the last way to sign in, which must stay */
export async function unlinkProvider(
  identity: Identity,
  client: Client,
  person: Person,
  provider: { readonly id: string; readonly name: string },
): Promise<boolean> {
  const { internalAdapter } = await identity.auth.$context
  const rows = await internalAdapter.findAccounts(person.id)
  const row = rows.find(({ providerId }) => providerId === provider.id)
  if (row === undefined) return true
  const { providers, hasPasswords } = identity.settings
  const isUsable = (id: string): boolean => (id === CREDENTIAL ? hasPasswords : providers.some((one) => one.id === id))
  if (!rows.some((other) => other !== row && isUsable(other.providerId))) return false
  const parameters = { at: nowText(identity), provider: provider.name }
  const reply = await withNotice(
    identity,
    { userId: person.id, part: `provider ${provider.id}`, to: person.email, name: 'provider-unlinked', parameters },
    () => identity.door.ask(client, 'POST /unlink-account', { body: { accountId: row.id } }),
    isDone,
  )
  return reply.status === 200 || failed(reply)
}

export type TwoFactorBegin =
  { readonly outcome: 'started'; readonly uri: string; readonly backupCodes: readonly string[] } | { readonly outcome: 'on' }

export async function startTwoFactor(identity: Identity, client: Client): Promise<TwoFactorBegin> {
  const reply = await identity.door.ask(client, 'POST /two-factor/enable', { isProven: true })
  if (reply.code === 'TOTP_ALREADY_ENABLED') return { outcome: 'on' }
  const { totpURI, backupCodes } = reply.body
  if (typeof totpURI !== 'string' || !Array.isArray(backupCodes)) return failed(reply)
  return { outcome: 'started', uri: totpURI, backupCodes: backupCodes.map(String) }
}

/** Turns two-factor on by a first code, and ends all other sessions. */
export async function turnOnTwoFactor(
  identity: Identity,
  client: Client,
  person: Person,
  code: string,
): Promise<
  { readonly outcome: 'on'; readonly cookies: readonly string[] } | { readonly outcome: 'wrong' } | { readonly outcome: 'already-on' }
> {
  if (person.hasTwoFactor) return { outcome: 'already-on' }
  const before = new Set((await identity.sessions.list(person)).map(({ id }) => id))
  const reply = await withNotice(
    identity,
    { userId: person.id, part: 'two-factor', to: person.email, name: 'two-factor-on', parameters: { at: nowText(identity) } },
    async () => {
      const answer = await identity.door.ask(client, 'POST /two-factor/verify-totp', { body: { code: plainCode(code) } })
      if (isDone(answer)) await identity.sessions.end(person, (id) => before.has(id)) // the library has made a new session for this browser
      return answer
    },
    isDone,
  )
  if (reply.status !== 200) return reply.status < 500 ? { outcome: 'wrong' } : failed(reply)
  return { outcome: 'on', cookies: reply.cookies }
}

export async function turnOffTwoFactor(
  identity: Identity,
  client: Client,
  person: Person,
): Promise<{ readonly outcome: 'turned-off'; readonly cookies: readonly string[] } | { readonly outcome: 'off' }> {
  if (!person.hasTwoFactor) return { outcome: 'off' }
  const reply = await withNotice(
    identity,
    { userId: person.id, part: 'two-factor', to: person.email, name: 'two-factor-off', parameters: { at: nowText(identity) } },
    () => identity.door.ask(client, 'POST /two-factor/disable', { isProven: true }),
    isDone,
  )
  if (reply.status !== 200) return failed(reply)
  return { outcome: 'turned-off', cookies: reply.cookies }
}

export async function renewBackupCodes(
  identity: Identity,
  client: Client,
  person: Person,
): Promise<{ readonly outcome: 'renewed'; readonly backupCodes: readonly string[] } | { readonly outcome: 'off' }> {
  const reply = await withNotice(
    identity,
    { userId: person.id, part: 'backup-codes', to: person.email, name: 'new-backup-codes', parameters: { at: nowText(identity) } },
    () => identity.door.ask(client, 'POST /two-factor/generate-backup-codes', { isProven: true }),
    isDone,
  )
  const { backupCodes } = reply.body
  if (!Array.isArray(backupCodes)) return reply.status < 500 ? { outcome: 'off' } : failed(reply)
  return { outcome: 'renewed', backupCodes: backupCodes.map(String) }
}

/** Deletes the rows of the person. The caller has suspended the Account. */
export async function deletePerson(identity: Identity, userId: string): Promise<void> {
  const { internalAdapter } = await identity.auth.$context
  const user = await internalAdapter.findUserById(userId)
  if (user === null) return
  await endNotices(identity, userId)
  await identity.mail.queue(user.email, 'account-deleted', { at: nowText(identity) }) // first: after a crash, the address would be gone
  await internalAdapter.deleteUserSessions(userId)
  await endLinks(() => identity.auth.$context, userId)
  await forgetCodes(identity.database.db, userId)
  await internalAdapter.deleteUser(userId)
}

function isDone({ status }: Reply): boolean {
  return status === 200
}

function nowText({ clock }: Identity): string {
  return new Date(clock.now()).toISOString()
}

function failed({ status, code = '' }: Reply): never {
  throw new Error(`the identity library answered ${status} ${code}`)
}
