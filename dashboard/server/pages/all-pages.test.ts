/** What holds for every page, whatever its view holds. */
import { describe, expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import { checkYourMailPage } from './check-your-mail.ts'
import { errorPage } from './error.ts'
import { formExpiredPage } from './form-expired.ts'
import type { Html } from './html.ts'
import type { Site } from './layout.ts'
import { mailboxPage } from './mailbox.ts'
import { notFoundPage } from './not-found.ts'
import { redirectPage } from './redirect.ts'
import { deadResetLinkPage, newPasswordPage, resetPage, resetSentPage } from './reset.ts'
import { signInPage } from './sign-in.ts'
import { PROVIDER_ERRORS, SIGN_IN_REASONS, type SignInNotice } from './sign-in-notice.ts'
import { signUpPage } from './sign-up.ts'
import { tooManyRequestsPage } from './too-many-requests.ts'
import { twoFactorPage } from './two-factor.ts'
import { verifyPage } from './verify.ts'

/** @param text stands in every place of a view that holds a text from outside */
type Draw = (site: Site, text: string) => Html

const AT = new Date('2026-11-24T12:03:18Z')
const NOTICES: readonly SignInNotice[] = [
  ...SIGN_IN_REASONS.map((kind) => ({ kind })),
  ...PROVIDER_ERRORS.map((error) => ({ kind: 'provider-error', error, provider: 'github' }) as const),
  { kind: 'wrong-credentials' },
  { kind: 'too-many-tries', minutes: 5 },
]
const named = (notice: SignInNotice): string => (notice.kind === 'provider-error' ? notice.error : notice.kind)
const PAGES: readonly (readonly [name: string, draw: Draw])[] = [
  ['sign-in', (site, text) => signInPage(site, { email: text, next: text })],
  ...NOTICES.map(
    (notice) => [`sign-in, ${named(notice)}`, (site: Site, text: string) => signInPage(site, { email: text, next: text, notice })] as const,
  ),
  ['sign-up', (site, text) => signUpPage(site, { email: text, next: text })],
  ['sign-up, one error', (site, text) => signUpPage(site, { email: text, errors: { email: 'form' } })],
  ['sign-up, two errors', (site, text) => signUpPage(site, { email: text, errors: { email: 'form', password: 'too-long' } })],
  ['check your mail', (site, text) => checkYourMailPage(site, { address: text, secondsUntilResend: 42, leftToday: 4, next: text })],
  [
    'check your mail, again',
    (site, text) => checkYourMailPage(site, { address: text, secondsUntilResend: 0, leftToday: 1, wasResent: true }),
  ],
  ['check your mail, the last', (site, text) => checkYourMailPage(site, { address: text, secondsUntilResend: 60, leftToday: 0 })],
  ['verify', (site, text) => verifyPage(site, { state: 'same-browser', token: text, address: text })],
  ['verify, new password', (site, text) => verifyPage(site, { state: 'new-password', token: text, address: text, error: 'too-short' })],
  ['verify, password', (site, text) => verifyPage(site, { state: 'sign-up-password', token: text, address: text, isWrong: true })],
  ['verify, dead link', (site, text) => verifyPage(site, { state: 'dead', address: text })],
  ['verify, new address', (site, text) => verifyPage(site, { state: 'new-address', token: text, address: text })],
  ['verify, other person', (site, text) => verifyPage(site, { state: 'sign-in-first', token: text, address: text, signedInAs: text })],
  ['reset', (site, text) => resetPage(site, { email: text, error: 'form' })],
  ['reset, sent', (site, text) => resetSentPage(site, { address: text, secondsUntilResend: 58 })],
  ['reset, new password', (site, text) => newPasswordPage(site, { token: text, address: text })],
  ['reset, dead link', (site, text) => deadResetLinkPage(site, { email: text })],
  ['two-factor', (site, text) => twoFactorPage(site, { method: 'app', error: 'used', next: text })],
  ['backup code', (site, text) => twoFactorPage(site, { method: 'backup-code', next: text })],
  ['error', (site, text) => errorPage(site, { kind: 'internal', requestID: text, at: AT, tryAgain: text })],
  ['outage', (site, text) => errorPage(site, { kind: 'outage', requestID: text, at: AT, tryAgain: text })],
  ['busy', (site, text) => errorPage(site, { kind: 'busy', requestID: text, at: AT, tryAgain: text })],
  ['not found', (site) => notFoundPage(site)],
  ['too many requests', (site, text) => tooManyRequestsPage(site, { secondsToWait: 30, tryAgain: text })],
  ['form expired', (site, text) => formExpiredPage(site, { goOn: text })],
  ['redirect', (site, text) => redirectPage(site, { url: 'https://github.com/login', provider: text })],
  ['mailbox', (site, text) => mailboxPage(site, { mails: [{ id: text, to: text, subject: text, at: AT, text }] })],
  ['mail', (site, text) => mailboxPage(site, { mails: [{ id: text, to: text, subject: text, at: AT, text }], shown: text })],
]

const SITE: Site = {
  publicHost: 'models.fernwood.example',
  providers: [
    { id: 'github', name: 'GitHub' },
    { id: 'google', name: 'Google' },
  ],
  hasPasswords: true,
  styles: ['/assets/door-1a2b.css'],
  scripts: ['/assets/door-3c4d.js'],
}
const hostile = (text: string): Site => ({ ...SITE, publicHost: text, providers: [{ id: text, name: text }] })
const attributes = (page: string, name: string): string[] =>
  [...page.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value]) => value!)
const BENIGN = 'maya@fernwood.example'

describe.each(PAGES)('the page %s', (_, draw) => {
  const page = tidyHTML(draw(SITE, BENIGN))

  test('has a title, one heading that comes first, the assets, and sends no address of the page to other sites', () => {
    expect(page).toMatch(/^<!doctype html><html lang="en">/)
    expect(page).toMatch(/<title>[^<]+ · Headgate<\/title>/)
    expect(page.match(/<h1>/g)).toHaveLength(1)
    expect(page).toMatch(/<main><h1>[^<]+<\/h1>/)
    expect(page).toContain('<meta name="referrer" content="same-origin"/>')
    expect(page).toContain('<link rel="stylesheet" href="/assets/door-1a2b.css"/>')
    expect(page).toContain('<script type="module" src="/assets/door-3c4d.js"></script>')
    expect(page).toContain('<span>models.fernwood.example</span>')
  })

  test('holds no inline style or script, and loads nothing from elsewhere', () => {
    expect(page).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?! type="module" src="\/)/)
    expect(page).not.toMatch(/src="(?!\/assets\/)|@import|<(img|iframe|object|embed|base)/)
  })

  test('has at most one primary button, one focus, and names for all fields', () => {
    expect(page.match(/button primary/g)?.length ?? 0).toBeLessThanOrEqual(1)
    expect(page.match(/\sautofocus/g)?.length ?? 0).toBeLessThanOrEqual(1)
    const ids = attributes(page, 'id')
    expect(new Set(ids).size).toBe(ids.length)
    for (const tied of [...attributes(page, 'for'), ...attributes(page, 'aria-describedby')]) expect(ids).toContain(tied)
    for (const [input] of page.matchAll(/<input(?![^>]*(type="hidden"|aria-hidden="true"))[^>]*>/g)) {
      expect(attributes(page, 'for')).toContain(attributes(input, 'id')[0])
    }
  })

  test('posts its forms to paths of the dashboard', () => {
    for (const [form] of page.matchAll(/<form[^>]*>/g)) expect(form).toMatch(/ method="post" action="\/[a-z][a-z/-]*"/)
    for (const address of attributes(page, 'href'))
      expect(address).toMatch(/^(\/(?!\/)|#$|#(email|password)$|https:\/\/github\.com\/login$)/)
  })

  const ATTACKS = [
    '"><script>alert(1)</script>',
    "' onfocus='alert(1)",
    '<img src=x onerror=alert(1)>',
    'javascript:alert(1)',
    '//evil.example',
    '\\"><b>',
  ]
  test.each(ATTACKS)('shows %j as text: it adds no element, attribute or address', (attack) => {
    const outline = (text: string): string[] =>
      [...tidyHTML(draw(hostile(text), text)).matchAll(/<[^>]*>/g)].map(([tag]) => tag.replaceAll(/="[^"]*"/g, ''))
    expect(outline(attack)).toEqual(outline('harmless'))
    for (const address of attributes(tidyHTML(draw(hostile(attack), attack)), '(?:href|action|src)')) {
      expect(address).toMatch(/^(\/(?![/\\])|#|https:\/\/github\.com\/)/)
    }
  })
})
