/** The page that signs a person in, with the reason to show there and the page to return to. Pure. */

/** `confirm`: sign in again before a change that needs a fresh proof. */
export type SignInReason = 'session-ended' | 'confirm' | 'signed-out' | 'account-deleted'

/** @param next path of the page to return to */
export function signInPath(reason: SignInReason, next?: string): string {
  return `/sign-in?reason=${reason}${next === undefined ? '' : `&next=${encodeURIComponent(next)}`}`
}
