/** What happened when a provider sent the person back, in our own words: a text of the provider or of the address bar is never shown. Pure. */

const WORDS: Readonly<Record<string, string>> = {
  access_denied: 'The provider was told not to go on. Link again if you want to.',
  account_already_linked_to_different_user:
    'This provider account belongs to another account here. Sign in with it, and unlink it there first.',
  email_not_verified: 'The provider has not verified your email. Verify the email there, then link again.',
  invalid_code: 'The provider took too long, or its answer was used already. Link again.',
  provider_unreachable: 'The provider does not answer at the moment. Try again later.',
  state_mismatch: 'The answer came too late, or from another browser. Link again.',
}

/** @param code from the address bar, so anybody may have written it */
export function linkProblem(code: string): string {
  return Object.hasOwn(WORDS, code) ? (WORDS[code] ?? '') : 'Something did not work between the provider and this page. Link again.'
}
