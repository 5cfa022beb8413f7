/**
 * Begins the session of a person who has just verified the address. The library would verify the address by itself and then begin the session, but
 * its statement names the address and not the person: somebody else who signed up with the address meanwhile would be verified.
 */
import type { BetterAuthPlugin } from 'better-auth'
import { APIError, createAuthEndpoint } from 'better-auth/api'
import { setSessionCookie } from 'better-auth/cookies'

/** @param personOf the person of the call. No request can name one. */
export function firstSession(personOf: () => string | undefined): BetterAuthPlugin {
  return {
    id: 'headgate-first-session',
    endpoints: {
      beginFirstSession: createAuthEndpoint('/headgate/first-session', { method: 'POST' }, async (ctx) => {
        const { internalAdapter } = ctx.context
        const id = personOf()
        const user = id === undefined ? null : await internalAdapter.findUserById(id)
        if (!user?.emailVerified) throw new APIError('NOT_FOUND')
        await setSessionCookie(ctx, { session: await internalAdapter.createSession(user.id), user })
        return ctx.json({})
      }),
    },
  }
}
