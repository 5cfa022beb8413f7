import { expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import { checkYourMailPage, type CheckYourMailView } from './check-your-mail.ts'
import type { Site } from './layout.ts'

const SITE: Site = { publicHost: 'host', providers: [], hasPasswords: true, styles: [], scripts: [] }
const page = (view: Partial<CheckYourMailView> = {}): string =>
  tidyHTML(checkYourMailPage(SITE, { address: 'maya@fernwood.example', secondsUntilResend: 0, leftToday: 4, ...view }))

test('the page names the address, and another mail can be asked for', () => {
  const text = page({ next: '/settings' })
  expect(text).toContain('<b>maya@fernwood.example</b>')
  expect(text).toMatch(/action="\/check-your-mail">[^]*name="email" value="maya@fernwood.example"[^]*name="next" value="\/settings"/)
  expect(text).toMatch(/<button class="button" type="submit">Send again<\/button>/)
  expect(text).not.toMatch(/disabled|noscript|Sent again/)
})

test.each([
  [42, '0:42', 'less than a minute'],
  [60, '1:00', '1 minute'],
  [125, '2:05', '3 minutes'],
])('for %i s the button waits, says how long, and the reason is said without a script too', (seconds, clock, words) => {
  const text = page({ secondsUntilResend: seconds })
  expect(text).toMatch(new RegExp(`disabled data-countdown-seconds="${seconds}"> ?Send again in ${clock} ?</button>`))
  expect(text).toContain(`You can ask for another mail in ${words}.`)
  expect(text).toMatch(/<noscript><p class="aside">[^<]*load this page again/)
})

test('a second mail is confirmed, with the number of mails that are left', () => {
  expect(page({ wasResent: true, leftToday: 3 })).toMatch(/class="banner ok" role="status">[^]*Sent again[^]*ask for 3 more today/)
})

test('after the last mail of a day there is no button, and the page says so', () => {
  const text = page({ wasResent: true, leftToday: 0, secondsUntilResend: 30 })
  expect(text).not.toContain('<button')
  expect(text).toContain('No more mails can be sent to this address today.')
  expect(text).not.toContain('more today.</p>')
})

test('a browser that did not sign up is told nothing about other mails to the address', () => {
  const text = page({ wasResent: true, leftToday: undefined, secondsUntilResend: 60 })
  expect(text).toMatch(/Sent again[^]*action="\/check-your-mail"/)
  expect(text).not.toMatch(/more today|address today/)
})
