/**
 * What happened when a provider sent the person back: the server leads to `/settings?linked=ID` or `/settings?provider=ID&error=CODE`. In our
 * own words: a text of the provider or of the address bar is never shown. Pure.
 */

export interface LinkOutcome {
  /** Id of the provider, from the address bar. */
  readonly provider: string | null
  /** Why the provider was not linked; absent where it was. */
  readonly problem?: string
}

const WORDS: Readonly<Record<string, string>> = {
  access_denied: 'The provider was told not to go on. Link again if you want to.',
  account_already_linked_to_different_user:
    'This provider account belongs to another account here. Sign in with it, and unlink it there first.',
  email_not_verified: 'The provider has not verified your email. Verify the email there, then link again.',
  invalid_code: 'The provider took too long, or its answer was used already. Link again.',
  provider_unreachable: 'The provider does not answer at the moment. Try again later.',
  state_mismatch: 'The answer came too late, or from another browser. Link again.',
}

/** @returns undefined where the person does not come from a provider */
export function linkOutcome(query: URLSearchParams): LinkOutcome | undefined {
  const error = query.get('error')
  if (error !== null) return { provider: query.get('provider'), problem: wordsOf(error) }
  return query.has('linked') ? { provider: query.get('linked') } : undefined
}

/** @param code from the address bar, so anybody may have written it */
function wordsOf(code: string): string {
  return Object.hasOwn(WORDS, code) ? (WORDS[code] ?? '') : 'Something did not work between the provider and this page. Link again.'
}
