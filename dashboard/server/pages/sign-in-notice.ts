/** What the sign-in page has to say before a person signs in, and its words. No text of a provider or of a URL is ever shown. */
import { banner } from './controls.ts'
import { html, type Html } from './html.ts'
import type { Site } from './layout.ts'
import { counted } from './utc-time.ts'

/** Why a provider sign-in has failed: the codes of the identity library that people can do something about, and two of ours. */
export const PROVIDER_ERRORS = [
  'email_not_verified',
  'account_not_linked',
  'state_mismatch',
  'invalid_code',
  'provider_unreachable',
  'access_denied',
  'other',
] as const
export type ProviderError = (typeof PROVIDER_ERRORS)[number]

/** The known code, or `other`. @param code from a URL, so anybody may have written it */
export function providerErrorOf(code: unknown): ProviderError {
  return PROVIDER_ERRORS.find((known) => known === code) ?? 'other'
}

/** Notices without further data. A URL may name one: `/sign-in?reason=signed-out`. */
export const SIGN_IN_REASONS = [
  'session-ended',
  'confirm',
  'signed-out',
  'password-set',
  'email-verified',
  'address-changed',
  'account-deleted',
  'two-factor-ended',
] as const
export type SignInReason = (typeof SIGN_IN_REASONS)[number]

export function signInReasonOf(reason: unknown): SignInReason | undefined {
  return SIGN_IN_REASONS.find((known) => known === reason)
}

export type SignInNotice =
  | { readonly kind: SignInReason }
  /** Also for an unknown address and an unverified one. */
  | { readonly kind: 'wrong-credentials' }
  | { readonly kind: 'too-many-tries'; readonly minutes: number }
  /** `provider` is an id. An id that is not configured is not shown. */
  | { readonly kind: 'provider-error'; readonly error: ProviderError; readonly provider?: string | undefined }

/** Id of the banner that says what is wrong with the typed credentials. The field names the banner as its description. */
export const CREDENTIALS_NOTICE_ID = 'notice'

/** Heading and tab title where the notice is the reason for the page. */
export interface SignInHeading {
  readonly tab: string
  readonly title: string
  readonly lead?: string
}

export function signInHeading(notice: SignInNotice | undefined, next: string | undefined): SignInHeading {
  if (notice?.kind === 'session-ended') {
    const wayOn = next === undefined ? 'Sign in to go on.' : 'Sign in and you are back where you were, with what you typed.'
    return { tab: 'Signed out', title: 'You were signed out', lead: `Your session has ended. ${wayOn}` }
  }
  if (notice?.kind === 'confirm') {
    const lead = 'Your last sign-in is more than 10 minutes ago. Sign in again to go on. Nothing was changed yet.'
    return { tab: 'Confirm it is you', title: 'Confirm it is you', lead }
  }
  return { tab: 'Sign in', title: 'Sign in' }
}

export function signInBanner(site: Site, notice: SignInNotice): Html | undefined {
  switch (notice.kind) {
    case 'session-ended':
    case 'confirm':
      return undefined // the heading says it
    case 'provider-error':
      return providerBanner(site, notice)
    case 'wrong-credentials':
      return banner({
        tone: 'danger',
        isAlert: true,
        id: CREDENTIALS_NOTICE_ID,
        title: 'Email or password is wrong',
        text: html`Try again, or <a href="/reset">set a new password</a>. If you have not verified your address yet, use the link in our
          mail first.`,
      })
    case 'too-many-tries':
      return banner({
        tone: 'danger',
        isAlert: true,
        title: 'Too many tries',
        text: `Wait ${counted(notice.minutes, 'minute')}, then try again. Your API keys go on working.`,
      })
    default:
      return banner(REASON_BANNERS[notice.kind])
  }
}

const REASON_BANNERS: Readonly<Record<Exclude<SignInReason, 'session-ended' | 'confirm'>, Parameters<typeof banner>[0]>> = {
  'signed-out': { tone: 'info', title: 'You are signed out' },
  'password-set': { tone: 'ok', title: 'Password set', text: 'All other sessions have ended. Sign in with the new password.' },
  'email-verified': { tone: 'ok', title: 'Email verified', text: 'Sign in to go on.' },
  'address-changed': { tone: 'ok', title: 'Email changed', text: 'Sign in with the new address from now on.' },
  'account-deleted': { tone: 'info', title: 'Account deleted', text: 'You can no longer sign in, and your API keys no longer work.' },
  'two-factor-ended': {
    tone: 'warn',
    isAlert: true,
    title: 'The code was not accepted in time',
    text: 'It was wrong too often, or took longer than 10 minutes. Sign in again to get another try.',
  },
}

/** First sentence, then what to do. `OTHER_WAY` is replaced if there is another way to sign in. */
const OTHER_WAY = '|'
const PROVIDER_WORDS: Readonly<Record<ProviderError, readonly [title: (provider: string) => string, text: (provider: string) => string]>> =
  {
    email_not_verified: [
      (provider) => `${provider} gave us no verified address`,
      (provider) => `Verify your primary email at ${provider} and come back${OTHER_WAY}.`,
    ],
    account_not_linked: [
      () => 'This address already has an account here',
      (provider) => `Sign in as before, then link ${provider} in Settings.`,
    ],
    state_mismatch: [
      () => 'This sign-in was started in another browser, or took too long',
      (provider) => `Start again: continue with ${provider} in this browser${OTHER_WAY}.`,
    ],
    invalid_code: [(provider) => `${provider} did not confirm the sign-in`, () => `Try again${OTHER_WAY}.`],
    provider_unreachable: [(provider) => `${provider} does not answer`, () => `Try again in a few minutes${OTHER_WAY}.`],
    access_denied: [
      (provider) => `The sign-in was not allowed at ${provider}`,
      (provider) => `Nothing was changed. Continue with ${provider} and allow the sign-in${OTHER_WAY}.`,
    ],
    other: [(provider) => `Sign-in with ${provider} did not work`, () => `Try again${OTHER_WAY}.`],
  }

function providerBanner(site: Site, { error, provider: id }: Extract<SignInNotice, { kind: 'provider-error' }>): Html {
  const name = site.providers.find((provider) => provider.id === id)?.name
  const [title, text] = PROVIDER_WORDS[error]
  const ways = site.providers.length + (site.hasPasswords ? 1 : 0)
  return banner({
    tone: 'warn',
    isAlert: true,
    title: sentence(title(name ?? 'the provider')),
    text: text(name ?? 'the provider').replace(OTHER_WAY, ways > 1 ? ', or sign in another way' : ''),
  })
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
