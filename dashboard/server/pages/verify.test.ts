import { expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import type { Site } from './layout.ts'
import { verifyPage, type VerifyView } from './verify.ts'

const SITE: Site = { publicHost: 'host', providers: [], hasPasswords: true, styles: [], scripts: [] }
const LINK = { token: 'a+b/c', address: 'maya@fernwood.example' }
const page = (view: VerifyView): string => tidyHTML(verifyPage(SITE, view))

const VERIFY = '<button class="button primary" type="submit">Verify email</button>'

test('the browser that signed up verifies by one button and no field', () => {
  const text = page({ state: 'same-browser', ...LINK })
  expect(text).toMatch(/<form class="form" method="post" action="\/verify"><input type="hidden" name="token" value="a\+b\/c"\/>/)
  expect(text).toContain(VERIFY)
  expect(text).not.toContain('<label')
})

test('another browser sets a new password, and says why', () => {
  const text = page({ state: 'new-password', ...LINK })
  expect(text).toContain('This link was asked for in another browser.')
  expect(text).toMatch(/<label for="password">New password<\/label>[^]*autocomplete="new-password"/)
  expect(text).toContain(VERIFY)
  expect(text).toContain('href="/verify?token=a%2Bb%2Fc&amp;with=password"')
  expect(text).not.toContain('name="with"')
  expect(page({ state: 'new-password', ...LINK, error: 'too-short' })).toMatch(/class="error" id="password-help">Write at least 12/)
})

test('another browser may give the password of the sign-up instead, and its form says which password it sends', () => {
  const text = page({ state: 'sign-up-password', ...LINK })
  expect(text).toContain('name="with" value="password"')
  expect(text).toMatch(/<label for="password">Password<\/label>[^]*autocomplete="current-password"/)
  expect(text).toContain(VERIFY)
  expect(text).toContain('href="/verify?token=a%2Bb%2Fc">Set a new password')
  expect(page({ state: 'sign-up-password', ...LINK, isWrong: true })).toContain('This is not the password from sign-up.')
})

test('a dead link asks for a new one, for an address that can be changed', () => {
  const text = page({ state: 'dead', address: LINK.address })
  expect(text).toMatch(/action="\/check-your-mail">[^]*<input id="email"[^>]* value="maya@fernwood.example"[^]*Send a new link/)
  expect(text).not.toContain('action="/verify"')
  expect(page({ state: 'dead', error: 'form' })).toContain('Write the whole address')
})

test('a new address is verified by one button for the person who is signed in', () => {
  const text = page({ state: 'new-address', ...LINK })
  expect(text).toContain('<b>maya@fernwood.example</b>')
  expect(text).toContain('action="/verify"')
  expect(text).toContain(VERIFY)
})

test('a new address is not verified for others: the page leads to sign-in, and from there back to the link', () => {
  const text = page({ state: 'sign-in-first', ...LINK })
  expect(text).not.toMatch(/<form|Verify email<\/button>/)
  expect(text).toContain('href="/sign-in?next=%2Fverify%3Ftoken%3Da%252Bb%252Fc"')
  expect(page({ state: 'sign-in-first', ...LINK, signedInAs: 'noor@fernwood.example' })).toContain(
    'signed in as <b>noor@fernwood.example</b>',
  )
})
