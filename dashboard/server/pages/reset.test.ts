import { expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import type { Site } from './layout.ts'
import { deadResetLinkPage, newPasswordPage, resetPage, resetSentPage } from './reset.ts'

const SITE: Site = { publicHost: 'host', providers: [], hasPasswords: true, styles: [], scripts: [] }

test('a reset asks for the email alone', () => {
  const text = tidyHTML(resetPage(SITE, { email: 'maya@fernwood.example' }))
  expect(text).toMatch(/action="\/reset">[^]*value="maya@fernwood.example"[^]*<button class="button primary" type="submit">Send reset link/)
  expect(tidyHTML(resetPage(SITE, { error: 'form' }))).toMatch(/novalidate>[^]*class="error" id="email-help">Write the whole address/)
})

test('the answer to a reset does not say whether the address is known', () => {
  const text = tidyHTML(resetSentPage(SITE, { address: 'maya@fernwood.example', secondsUntilResend: 58 }))
  expect(text).toContain('If <b>maya@fernwood.example</b> has an account here')
  expect(text).toMatch(/action="\/reset">[^]*name="email" value="maya@fernwood.example"[^]*data-countdown-seconds="58"/)
})

test('the link leads to a new password, with and without a known address', () => {
  const text = tidyHTML(newPasswordPage(SITE, { token: 't1', address: 'maya@fernwood.example' }))
  expect(text).toMatch(/action="\/reset\/new"><input type="hidden" name="token" value="t1"\/>/)
  expect(text).toMatch(/For <b>maya@fernwood.example<\/b>. All other sessions end/)
  expect(text).toMatch(/<label for="password">New password<\/label>[^]*<button class="button primary" type="submit">Set password/)
  expect(tidyHTML(newPasswordPage(SITE, { token: 't1' }))).not.toMatch(/type="email"|For </)
  expect(tidyHTML(newPasswordPage(SITE, { token: 't1', error: 'too-common' }))).toContain('This password is on a list of common ones.')
})

test('a dead link asks for a new one', () => {
  expect(tidyHTML(deadResetLinkPage(SITE))).toMatch(/<h1>This link no longer works<\/h1>[^]*action="\/reset">[^]*Send a new link/)
})
