import { expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import type { Site } from './layout.ts'
import { twoFactorPage, type TwoFactorView } from './two-factor.ts'

const SITE: Site = { publicHost: 'host', providers: [], hasPasswords: true, styles: [], scripts: [] }
const page = (view: TwoFactorView): string => tidyHTML(twoFactorPage(SITE, view))

test('the app asks for its code, leads to the backup codes, and keeps the page to go on to', () => {
  const text = page({ method: 'app', next: '/settings' })
  expect(text).toMatch(/action="\/two-factor"><input type="hidden" name="next" value="\/settings"\/>/)
  expect(text).toMatch(/<label for="code">Code<\/label><input id="code" name="code"[^>]*autocomplete="one-time-code"/)
  expect(text).toContain('href="/two-factor?with=backup-code&amp;next=%2Fsettings">Use a backup code')
  expect(text).toContain('href="/sign-in?next=%2Fsettings">Sign in as someone else')
  expect(text).not.toMatch(/name="with"|maxlength/)
})

test('a backup code is sent as one, and the way back to the app is there', () => {
  const text = page({ method: 'backup-code' })
  expect(text).toContain('name="with" value="backup-code"')
  expect(text).toContain('<label for="code">Backup code</label>')
  expect(text).toContain('href="/two-factor">Use your authenticator app')
  expect(text).not.toContain('one-time-code')
})

test.each([
  ['app', 'wrong', 'This code is wrong or too old.'],
  ['app', 'used', 'This code has been used. Wait for the next one.'],
  ['backup-code', 'wrong', 'This backup code is wrong, or has been used.'],
  ['backup-code', 'used', 'This backup code has been used.'],
] as const)('%s: a code that is %s says so at the field, which is empty and has the focus', (method, error, words) => {
  const text = page({ method, error })
  expect(text).toContain(`<p class="error" id="code-help">${words}`)
  expect(text).toMatch(/<input id="code"[^>]* aria-describedby="code-help" aria-invalid="true" autofocus/)
  expect(text).not.toMatch(/<input id="code"[^>]* value=/)
})
