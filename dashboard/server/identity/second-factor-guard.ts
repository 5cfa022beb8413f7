/**
 * Closes two gaps of the two-factor plug-in of better-auth 1.7.25.
 * 1. The plug-in challenges sign-ins by password only, so a provider would skip the second factor (better-auth#4340).
 * 2. A TOTP code works any number of times within its period (better-auth#10387); RFC 6238 §5.2 requires that a code is accepted once.
 */
import type { BetterAuthPlugin } from 'better-auth'
import { APIError, createAuthMiddleware } from 'better-auth/api'
import { deleteSessionCookie } from 'better-auth/cookies'
import { generateRandomString } from 'better-auth/crypto'

export interface SecondFactorGuardOptions {
  /** Where the person enters the code. */
  readonly challengeURL: string
  /** Stores the code of the person. @returns false if it was stored before */
  readonly useCode: (userId: string, code: string) => Promise<boolean>
  readonly isUsed: (userId: string, code: string) => Promise<boolean>
}

/** Time for the code after the provider has answered, s: as long as the plug-in gives after a password. */
const CHALLENGE_SECONDS = 600
const IDENTIFIER_CHARACTERS = 20

export function secondFactorGuard({ challengeURL, useCode, isUsed }: SecondFactorGuardOptions): BetterAuthPlugin {
  return {
    id: 'headgate-second-factor',
    hooks: {
      before: [{ matcher: ({ path }) => path === '/two-factor/verify-totp', handler: refuseKnownCode(isUsed) }],
      after: [
        { matcher: ({ path }) => path === '/callback/:id', handler: challengeProviderSignIn(challengeURL) },
        { matcher: ({ path }) => path === '/two-factor/verify-totp', handler: refuseUsedCode(useCode) },
      ],
    },
  }
}

/** Takes the session of a provider's sign-in away, and asks for the code in the way the plug-in does after a password. */
function challengeProviderSignIn(challengeURL: string): ReturnType<typeof createAuthMiddleware> {
  return createAuthMiddleware(async (ctx) => {
    const { context } = ctx
    const made = context.newSession
    if (!made?.user['twoFactorEnabled']) return
    deleteSessionCookie(ctx, true)
    await context.internalAdapter.deleteSession(made.session.token)
    context.setNewSession(null)
    const identifier = `2fa-${generateRandomString(IDENTIFIER_CHARACTERS)}`
    const expiresAt = new Date(Date.now() + CHALLENGE_SECONDS * 1_000)
    await context.internalAdapter.createVerificationValue({ value: made.user.id, identifier, expiresAt })
    await context.internalAdapter.createVerificationValue({ value: '0', identifier: `2fa-attempts-${identifier}`, expiresAt })
    const cookie = context.createAuthCookie('two_factor', { maxAge: CHALLENGE_SECONDS })
    await ctx.setSignedCookie(cookie.name, identifier, context.secret, cookie.attributes)
    throw ctx.redirect(challengeURL)
  })
}

/** Refuses a used code before the library ends the challenge, so that the person can type the next code on the same page. */
function refuseKnownCode(isUsed: SecondFactorGuardOptions['isUsed']): ReturnType<typeof createAuthMiddleware> {
  return createAuthMiddleware(async (ctx) => {
    const { context } = ctx
    const { name } = context.createAuthCookie('two_factor')
    const challenge = await ctx.getSignedCookie(name, context.secret)
    const person = challenge ? (await context.internalAdapter.findVerificationValue(challenge))?.value : undefined
    if (person !== undefined && (await isUsed(person, codeOf(ctx)))) throw codeUsed()
  })
}

function codeOf({ body }: { readonly body?: unknown }): string {
  const code = (body as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : ''
}

function codeUsed(): APIError {
  return new APIError('UNAUTHORIZED', { code: 'CODE_USED', message: 'This code has been used.' })
}

/** Of two calls with one code at once, the second ends here. */
function refuseUsedCode(useCode: SecondFactorGuardOptions['useCode']): ReturnType<typeof createAuthMiddleware> {
  return createAuthMiddleware(async (ctx) => {
    const { context } = ctx
    const person = context.newSession?.user ?? context.session?.user
    if (context.returned instanceof APIError || person === undefined) return
    if (await useCode(person.id, codeOf(ctx))) return
    if (context.newSession) {
      await context.internalAdapter.deleteSession(context.newSession.session.token)
      deleteSessionCookie(ctx, true)
      context.setNewSession(null)
    }
    throw codeUsed()
  })
}
