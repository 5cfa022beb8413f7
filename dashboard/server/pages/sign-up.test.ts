import { expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import type { Site } from './layout.ts'
import { signUpPage, type SignUpView } from './sign-up.ts'

const SITE: Site = { publicHost: 'host', providers: [{ id: 'github', name: 'GitHub' }], hasPasswords: true, styles: [], scripts: [] }
const page = (view: SignUpView = {}, site: Partial<Site> = {}): string => tidyHTML(signUpPage({ ...SITE, ...site }, view))

test('sign-up asks for email and a new password, or goes to a provider', () => {
  const text = page({ next: '/settings' })
  expect(text).toMatch(/<form class="form" method="post" action="\/sign-up">[^]*name="next" value="\/settings"/)
  expect(text).toMatch(/<input id="password"[^>]*autocomplete="new-password" required aria-describedby="password-help"/)
  expect(text).toContain('id="password-help">At least 12 characters.')
  expect(text).toContain('<button class="button primary" type="submit">Sign up</button>')
  expect(text).toContain('action="/sign-in/github"')
  expect(text).toContain('href="/sign-in?next=%2Fsettings"')
})

test.each([
  [{ email: 'form' }, 'email', 'Write the whole address, like name@company.example.'],
  [{ password: 'too-short' }, 'password', 'Write at least 12 characters.'],
  [{ password: 'too-long' }, 'password', 'Write at most 128 characters.'],
  [{ password: 'too-common' }, 'password', 'This password is on a list of common ones.'],
] as const)('the error %j is at its field, which has the focus, and keeps the email', (errors, name, words) => {
  const text = page({ email: 'maya@fernwood', errors })
  expect(text).toMatch(new RegExp(`<input id="${name}"[^>]* aria-describedby="${name}-help" aria-invalid="true" autofocus`))
  expect(text).toMatch(new RegExp(`<p class="error" id="${name}-help">${words}`))
  expect(text.match(/autofocus/g)).toHaveLength(1)
  expect(text).toContain('value="maya@fernwood"')
  expect(text).not.toMatch(/class="summary"/)
})

test('two errors are links above the form, which have the focus', () => {
  const text = page({ errors: { email: 'form', password: 'too-common' } })
  expect(text).toMatch(/<div class="summary" role="alert" tabindex="-1" autofocus>[^]*href="#email"[^]*href="#password"/)
  expect(text.match(/autofocus/g)).toHaveLength(1)
  expect(text.match(/class="error"/g)).toHaveLength(2)
})

test('without passwords, sign-up offers providers alone', () => {
  expect(page({}, { hasPasswords: false })).not.toMatch(/action="\/sign-up"|name="password"/)
})
