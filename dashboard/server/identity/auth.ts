/** The options of better-auth. Every deviation from its defaults closes a gap, and a test in test/integration/ fails without the deviation. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { type AuthContext, betterAuth, type BetterAuthOptions } from 'better-auth'
import { APIError, createAuthMiddleware } from 'better-auth/api'
import { getMigrations } from 'better-auth/db/migration'
import { genericOAuth } from 'better-auth/plugins/generic-oauth'
import { twoFactor } from 'better-auth/plugins/two-factor'
import { z } from 'zod'
import type { Database } from './database.ts'
import { firstSession } from './first-session.ts'
import { HashQueue, HashQueueFull } from './hash-queue.ts'
import { MAX_PASSWORD, MIN_PASSWORD } from './new-password.ts'
import { type HashCost, hashPassword, verifyPassword } from './password-hash.ts'
import { oauthConfig, type ProviderSettings } from './providers.ts'
import { secondFactorGuard } from './second-factor-guard.ts'
import { isUsed, useCode } from './used-codes.ts'

/** The mails that the library asks for. */
export interface IdentityMails {
  /** The link that proves the address. */
  verify(to: string, token: string): Promise<void>
  /** Somebody signed up with an address that has an account. */
  known(to: string): Promise<void>
  /** The link to a new password. */
  reset(to: string, token: string): Promise<void>
  /** The link that proves a new address. */
  newEmail(to: string, token: string): Promise<void>
}

export interface AuthSettings {
  /** Origin of the dashboard, without a slash at the end. Links are built of it, and never of a header. */
  readonly origin: string
  /** At least 32 random bytes as text. */
  readonly secret: string
  readonly providers: readonly ProviderSettings[]
  readonly hasPasswords: boolean
  /** Only tests set it, whose thousands of sign-ups need no protection. */
  readonly hashCost?: HashCost
}

export interface AuthDeps {
  readonly settings: AuthSettings
  readonly database: Database
  readonly mails: IdentityMails
  readonly clock: Clock
  readonly log: Log
}

/** What holds for one call of the library. */
export interface Asking {
  /** Whether the call may send a mail: mails per address are limited. The answer is the same without. */
  readonly mayMail: boolean
  /** Taken for the password of the person, who has proven to be that person in another way. Random, and known to this call alone. */
  readonly standIn?: string | undefined
  /** The person whose address was verified by this call, and whose first session begins. */
  readonly verified?: string | undefined
  /** Called before a provider is linked to a person who exists. The state of the flow alone says who that is, whatever session the browser has. */
  readonly onLink?: ((userId: string) => Promise<void>) | undefined
  /** Whether the call has begun to create a person. */
  isSignUp?: boolean
  /** The hash of the password of a sign-up, computed before its transaction begins. */
  hashed?: { readonly password: string; readonly hash: string }
  /** What failed meanwhile: the library answers some failures of the database like refusals. */
  failure?: unknown
}

export const asking = new AsyncLocalStorage<Asking>()

/** Header with the address of the client. The door sets the header; one from outside never reaches the library. */
export const CLIENT_HEADER = 'x-headgate-client'
/** Path of the library's routes; its callbacks for providers are public. */
export const AUTH_PATH = '/api/auth'
/** End of a session without use, s. */
const IDLE_SECONDS = 7 * 86_400
const SESSION_UPDATE_SECONDS = 3_600
const VERIFY_SECONDS = 86_400
const RESET_SECONDS = 1_800
const HASHES = { running: 2, waiting: 50 }
/** Requests of one source to one path of the library. */
const RATE = { enabled: true, storage: 'database', window: 60, max: 100 } as const

/** The part of the library's context that this folder changes rows through. */
export interface Records {
  readonly internalAdapter: Pick<AuthContext['internalAdapter'], 'updateUser'>
  readonly adapter: {
    deleteMany(query: {
      readonly model: string
      readonly where: { readonly field: string; readonly value: string | boolean }[]
    }): Promise<number>
  }
}

export type Auth = ReturnType<typeof createAuth>['auth']

/** @returns the library, and `idle`, which resolves when its background work is done */
export function createAuth(deps: AuthDeps) {
  const background = new Set<Promise<unknown>>()
  const hashes = new HashQueue(HASHES)
  const context = async (): Promise<Records> => await auth.$context
  const options = {
    ...fixedOptions(deps, background),
    ...peopleOptions(deps, hashes, context),
    plugins: plugins(deps, context),
  } satisfies BetterAuthOptions
  const auth = betterAuth(options)
  const migrate = async (db: Database['db']): Promise<void> =>
    (await getMigrations({ ...options, database: { ...options.database, db } })).runMigrations()
  const idle = async (): Promise<void> => {
    while (background.size > 0) await Promise.allSettled(background)
  }
  return { auth, migrate, idle, hashes }
}

function fixedOptions({ settings: { origin, secret }, database, log }: AuthDeps, background: Set<Promise<unknown>>) {
  const isSecure = origin.startsWith('https:')
  const failed = (error: unknown): void => log.error({ error: messageOf(error) }, 'identity: background work failed')
  return {
    appName: 'Headgate',
    baseURL: origin,
    basePath: AUTH_PATH,
    secret,
    telemetry: { enabled: false },
    database: { db: database.db, type: database.type, transaction: true },
    logger: {
      log: (level: string, message: string, ...details: unknown[]) => {
        noteFailure(details.find((detail) => detail instanceof Error))
        log.debug({ level }, `identity: ${message}`) // may name addresses; failures are logged by us
      },
    },
    onAPIError: { errorURL: `${origin}/sign-in`, throw: true }, // without `throw`, the library writes unexpected errors to the console
    session: { expiresIn: IDLE_SECONDS, updateAge: SESSION_UPDATE_SECONDS, freshAge: 0, cookieCache: { enabled: false } }, // freshness is ours
    verification: { storeIdentifier: 'hashed' },
    advanced: {
      useSecureCookies: false, // would add a prefix of its own
      cookiePrefix: cookiePrefix(origin),
      defaultCookieAttributes: isSecure ? { secure: true } : {},
      ipAddress: { ipAddressHeaders: [CLIENT_HEADER], ipv6Subnet: 64 },
      backgroundTasks: {
        handler: (task: Promise<unknown>) => {
          const done = task.catch(failed).finally(() => background.delete(done))
          background.add(done)
        },
      },
    },
    rateLimit: RATE,
  } satisfies BetterAuthOptions
}

/** Some failures of the database become an answer of the library that says something about the request. The door must know of them. */
function noteFailure(error: unknown): void {
  const call = asking.getStore()
  if (call !== undefined && error !== undefined) call.failure ??= error
}

/** The prefix of all cookies. On https, `__Host-` binds them to this host. */
export function cookiePrefix(origin: string): string {
  return origin.startsWith('https:') ? '__Host-headgate' : 'headgate'
}

function peopleOptions({ settings, mails }: AuthDeps, hashes: HashQueue, context: () => Promise<Records>) {
  return {
    emailAndPassword: {
      enabled: settings.hasPasswords,
      requireEmailVerification: true,
      autoSignIn: false,
      minPasswordLength: MIN_PASSWORD,
      maxPasswordLength: 2 * MAX_PASSWORD, // counts UTF-16 units, and `passwordProblem` counts characters
      revokeSessionsOnPasswordReset: true,
      resetPasswordTokenExpiresIn: RESET_SECONDS,
      password: {
        hash: async (password: string) => {
          const hashed = asking.getStore()?.hashed
          return hashed?.password === password ? hashed.hash : await queued(hashes, () => hashPassword(password, settings.hashCost))
        },
        verify: async ({ password, hash }: { password: string; hash: string }) =>
          password === asking.getStore()?.standIn || (await queued(hashes, () => verifyPassword(password, hash))),
      },
      onPasswordReset: async ({ user }: { user: { id: string } }) => {
        await endLinks(context, user.id)
        await (await context()).internalAdapter.updateUser(user.id, { emailVerified: true }) // the link proved the address
      },
      sendResetPassword: ({ user, token }: { user: { email: string }; token: string }) => ifAllowed(() => mails.reset(user.email, token)),
      onExistingUserSignUp: ({ user }: { user: { email: string; emailVerified: boolean } }) =>
        ifAllowed(async () => (user.emailVerified ? await mails.known(user.email) : undefined)),
    },
    emailVerification: {
      sendOnSignUp: true,
      sendOnSignIn: false,
      autoSignInAfterVerification: false, // `verify.ts` verifies, and begins the session
      expiresIn: VERIFY_SECONDS,
      sendVerificationEmail: ({ user, token }: { user: { email: string }; token: string }) =>
        ifAllowed(() => (isChange(token) ? mails.newEmail(user.email, token) : mails.verify(user.email, token))),
    },
    user: {
      changeEmail: { enabled: true },
      deleteUser: { enabled: true },
      validateUserInfo: ({ user, source }: { user: { email?: unknown; emailVerified?: unknown }; source: { method: string } }) =>
        source.method === 'oauth' && !(user.emailVerified === true && isAddress(user.email)) ? { error: 'email_not_verified' } : undefined,
    },
    account: {
      accountLinking: { disableImplicitLinking: true, requireLocalEmailVerified: true, trustedProviders: [], allowDifferentEmails: true },
      updateAccountOnSignIn: false,
      storeStateStrategy: 'cookie' as const, // encrypted; the database would hold the state, the nonce and the verifier of PKCE as they are
    },
    databaseHooks: DATABASE_HOOKS,
    hooks: { before: beforeSignUp(hashes, settings.hashCost) },
  } satisfies BetterAuthOptions
}

/** Runs before rows of the library are stored. */
const DATABASE_HOOKS = {
  account: {
    create: {
      // tokens of a provider are not needed after the sign-in, and a stolen database would hand them out
      before: async <T extends { readonly userId: string }>(account: T) => {
        const call = asking.getStore()
        if (call?.isSignUp !== true) await call?.onLink?.(account.userId)
        return { data: { ...account, accessToken: null, refreshToken: null, idToken: null } }
      },
    },
  },
  user: {
    create: {
      before: async () => {
        const call = asking.getStore()
        if (call) call.isSignUp = true
      },
    },
  },
}

/** Whether a provider names one plain address: a list or a line break would send our mails to somebody else, too. */
function isAddress(text: unknown): boolean {
  return z.email().safeParse(text).success
}

async function ifAllowed(send: () => Promise<void>): Promise<void> {
  if (asking.getStore()?.mayMail !== false) await send()
}

async function queued<T>(hashes: HashQueue, task: () => Promise<T>): Promise<T> {
  try {
    return await hashes.run(task)
  } catch (error) {
    if (error instanceof HashQueueFull) throw new APIError('SERVICE_UNAVAILABLE', { code: 'BUSY', message: error.message })
    throw error
  }
}

/** Whether a token of the library changes an address. Its payload is not secret, and the library checks the signature later. */
function isChange(token: string): boolean {
  const [, payload = ''] = token.split('.')
  return 'updateTo' in (JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as object)
}

/**
 * Hashes the password of a sign-up before the transaction begins, because the transaction holds the only connection to SQLite. Then deletes an
 * unverified person with this address, if a mail may go out: such a row proves nothing, and its former link and password end with it.
 */
function beforeSignUp(hashes: HashQueue, hashCost: HashCost | undefined): ReturnType<typeof createAuthMiddleware> {
  return createAuthMiddleware(async (ctx) => {
    if (ctx.path !== '/sign-up/email') return
    const { email, password } = ctx.body as { email: string; password: string }
    const call = asking.getStore()
    if (call === undefined) throw new APIError('NOT_FOUND')
    call.hashed = { password, hash: await queued(hashes, () => hashPassword(password, hashCost)) }
    if (call.mayMail) await deleteUnverified(() => Promise.resolve(ctx.context), email)
  })
}

/** Ends the other links to a new password of the person: the library would accept each of them after the first was used. */
export async function endLinks(context: () => Promise<Records>, userId: string): Promise<void> {
  const { adapter } = await context()
  await adapter.deleteMany({ model: 'verification', where: [{ field: 'value', value: userId }] })
}

/**
 * Deletes an unverified person, who owns nothing, so that a stranger's sign-up does not keep the owner of the address out. One statement: of a
 * person who is verified at the same moment, nothing is deleted. What belongs to the row goes with it by the foreign keys.
 */
export async function deleteUnverified(context: () => Promise<Records>, email: string): Promise<void> {
  const { adapter } = await context()
  await adapter.deleteMany({
    model: 'user',
    where: [
      { field: 'email', value: email.toLowerCase() },
      { field: 'emailVerified', value: false },
    ],
  })
}

function plugins({ settings, database, clock, log }: AuthDeps, context: () => Promise<Records>) {
  const { origin, providers } = settings
  return [
    genericOAuth({
      config: providers.map((one) => oauthConfig(one, { onVerified: ({ email }) => deleteUnverified(context, email), log })),
    }),
    twoFactor({ issuer: 'Headgate', allowPasswordless: true, backupCodeOptions: { amount: 10, storeBackupCodes: 'encrypted' } }),
    firstSession(() => asking.getStore()?.verified),
    secondFactorGuard({
      challengeURL: `${origin}/two-factor`,
      useCode: (userId, code) => useCode(database.db, clock, userId, code),
      isUsed: (userId, code) => isUsed(database.db, userId, code),
    }),
  ]
}
