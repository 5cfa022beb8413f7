import { describe, expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import type { Site } from './layout.ts'
import { signInPage, type SignInView } from './sign-in.ts'
import { PROVIDER_ERRORS, providerErrorOf, signInReasonOf, type SignInNotice } from './sign-in-notice.ts'

const GITHUB = { id: 'github', name: 'GitHub' }
const GOOGLE = { id: 'google', name: 'Google' }
const SITE: Site = { publicHost: 'models.fernwood.example', providers: [GITHUB, GOOGLE], hasPasswords: true, styles: [], scripts: [] }

const page = (view: SignInView = {}, site: Partial<Site> = {}): string => tidyHTML(signInPage({ ...SITE, ...site }, view))
const withNotice = (notice: SignInNotice, site: Partial<Site> = {}): string => page({ notice }, site)

describe('the sign-in page', () => {
  test('offers each provider by a form of its own, then email and password', () => {
    const text = page()
    expect(text).toMatch(/<form method="post" action="\/sign-in\/github">[^]*?<\/svg>Continue with GitHub<\/button>/)
    expect(text).toMatch(/<form method="post" action="\/sign-in\/google">[^]*?<\/svg>Continue with Google<\/button>/)
    expect(text).toMatch(/<form class="form" method="post" action="\/sign-in">[^]*<label for="email">Email<\/label>/)
    expect(text).toMatch(/<label for="password">Password<\/label>[^]*autocomplete="current-password"/)
    expect(text).toMatch(/<button class="button primary" type="submit">Sign in<\/button>/)
  })

  test('keeps the email and the page to go on to, in every form and in the link to sign-up', () => {
    const text = page({ email: 'maya@fernwood.example', next: '/settings?a=b&c' })
    expect(text).toContain('value="maya@fernwood.example"')
    expect(text.match(/name="next" value="\/settings\?a=b&amp;c"/g)).toHaveLength(3)
    expect(text).toContain('href="/sign-up?next=%2Fsettings%3Fa%3Db%26c"')
    expect(page()).not.toContain('next')
  })

  test('without passwords offers providers alone, and nothing about passwords', () => {
    const text = page({}, { hasPasswords: false })
    expect(text).toContain('Continue with GitHub')
    expect(text).not.toMatch(/password|class="or"|Sign up|name="email"/i)
  })

  test('without providers has no line between the two ways', () => {
    expect(page({}, { providers: [] })).not.toMatch(/class="(or|providers)"/)
    expect(page({}, { providers: [], hasPasswords: false })).toContain('No way to sign in is set up here')
  })

  test('gives an issuer that is neither GitHub nor Google a drawing too, and its id is one part of the path', () => {
    const text = page({}, { providers: [{ id: 'a/b', name: 'Fernwood <SSO>' }] })
    expect(text).toContain('action="/sign-in/a%2Fb"')
    expect(text).toMatch(/<\/svg>Continue with Fernwood &lt;SSO&gt;/)
  })

  test('hides the button that shows the password until a script takes over', () => {
    expect(page()).toMatch(/<button[^>]* data-show-password="password" hidden> Show<span class="visually-hidden"> password<\/span>/)
  })
})

describe('a notice', () => {
  test('about wrong credentials is one message, tied to the password, which has the focus and is empty', () => {
    const text = page({ email: 'maya@fernwood.example', notice: { kind: 'wrong-credentials' } })
    expect(text).toMatch(/class="banner danger" role="alert" id="notice">[^]*<b>Email or password is wrong<\/b>/)
    expect(text).toMatch(/<input id="password"[^>]* aria-describedby="notice" autofocus/)
    expect(text).not.toMatch(/<input id="password"[^>]* value=/)
    expect(text).toContain('value="maya@fernwood.example"')
  })

  test('about a session that ended is the heading, and promises a way back only where there is one', () => {
    const text = page({ notice: { kind: 'session-ended' }, next: '/settings' })
    expect(text).toContain('<title>Signed out · Headgate</title>')
    expect(text).toContain('<h1>You were signed out</h1>')
    expect(text).toContain('you are back where you were')
    expect(withNotice({ kind: 'session-ended' })).not.toContain('back where you were')
  })

  const SAID: readonly [SignInNotice, string][] = [
    [{ kind: 'too-many-tries', minutes: 1 }, 'Wait 1 minute, then'],
    [{ kind: 'too-many-tries', minutes: 14 }, 'Wait 14 minutes, then'],
    [{ kind: 'confirm' }, '<h1>Confirm it is you</h1>'],
    [{ kind: 'signed-out' }, 'You are signed out'],
    [{ kind: 'password-set' }, 'Password set'],
    [{ kind: 'email-verified' }, 'Email verified'],
    [{ kind: 'address-changed' }, 'Email changed'],
    [{ kind: 'account-deleted' }, 'Account deleted'],
    [{ kind: 'two-factor-ended' }, 'The code was not accepted in time'],
  ]
  test.each(SAID)('%j says %s, and the form stays', (notice, words) => {
    expect(withNotice(notice)).toContain(words)
    expect(withNotice(notice)).toContain('action="/sign-in"')
  })

  test.each(PROVIDER_ERRORS)('about the provider error %s names the provider and a way on', (error) => {
    const text = withNotice({ kind: 'provider-error', error, provider: 'github' })
    expect(text).toMatch(/class="banner warn" role="alert">[^]*GitHub[^]*class="providers"/)
    expect(text).not.toContain('|')
  })

  test('offers another way to sign in only where there is one', () => {
    const notice = { kind: 'provider-error', error: 'other', provider: 'github' } as const
    expect(withNotice(notice)).toContain('Try again, or sign in another way.')
    expect(withNotice(notice, { providers: [GITHUB], hasPasswords: false })).toContain('Try again.')
  })

  test('never shows a provider that is not configured, whatever a URL says', () => {
    const text = withNotice({ kind: 'provider-error', error: 'invalid_code', provider: 'Call 555-0100' })
    expect(text).toContain('The provider did not confirm the sign-in')
    expect(text).not.toContain('555')
  })

  test('is chosen from fixed lists: an unknown code is "other", an unknown reason is none', () => {
    expect([providerErrorOf('access_denied'), providerErrorOf('<b>'), providerErrorOf(['other'])]).toEqual([
      'access_denied',
      'other',
      'other',
    ])
    expect([signInReasonOf('signed-out'), signInReasonOf('wrong-credentials'), signInReasonOf(undefined)]).toEqual([
      'signed-out',
      undefined,
      undefined,
    ])
  })
})
