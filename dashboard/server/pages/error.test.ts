/** The pages for answers that are not the expected ones. */
import { expect, test } from 'vitest'
import { tidyHTML } from '../../../test/support/tidy-html.ts'
import { errorPage } from './error.ts'
import { formExpiredPage } from './form-expired.ts'
import type { Site } from './layout.ts'
import { notFoundPage } from './not-found.ts'
import { redirectPage } from './redirect.ts'
import { tooManyRequestsPage } from './too-many-requests.ts'

const SITE: Site = { publicHost: 'host', providers: [], hasPasswords: true, styles: [], scripts: [] }
const AT = new Date('2026-11-24T12:03:18Z')

test('an error of ours shows the request id, the time, and two ways on', () => {
  const text = tidyHTML(errorPage(SITE, { kind: 'internal', requestID: 'req_01KAW6T9Z3N8', at: AT, tryAgain: '/sign-in?next=%2F' }))
  expect(text).toMatch(/<label for="request-id">Request id<\/label>[^]*id="request-id" readonly value="req_01KAW6T9Z3N8"/)
  expect(text).toContain('<time datetime="2026-11-24T12:03:18.000Z">24 Nov 2026, 12:03:18 UTC</time>')
  expect(text).toMatch(/href="\/sign-in\?next=%2F">Try again<\/a><a class="button" href="\/">Go to Overview/)
  expect(text).toContain('data-copy="request-id" hidden>Copy')
})

test('an error of ours does not claim that nothing was changed, and a busy server does', () => {
  const page = (kind: 'internal' | 'busy'): string => tidyHTML(errorPage(SITE, { kind, requestID: 'r', at: AT, tryAgain: '/' }))
  expect(page('internal')).not.toContain('Nothing was changed')
  expect(page('busy')).toMatch(/Sign-in is busy right now[^]*Nothing was changed/)
})

test('a page that is not there and one of somebody else look alike', () => {
  expect(tidyHTML(notFoundPage(SITE))).toMatch(/There is nothing here[^]*does not exist, or belongs to another account[^]*href="\/"/)
})

test.each([
  [0, '1 second'],
  [1, '1 second'],
  [59, '59 seconds'],
  [60, '1 minute'],
  [61, '2 minutes'],
])('too many requests: %i s are told as %s', (secondsToWait, words) => {
  const text = tidyHTML(tooManyRequestsPage(SITE, { secondsToWait, tryAgain: '/reset' }))
  expect(text).toContain(`Wait ${words}, then`)
  expect(text).toContain('href="/reset"')
})

test('a form from an old page leads back to its page', () => {
  const text = tidyHTML(formExpiredPage(SITE, { goOn: '/reset/new?token=t' }))
  expect(text).toMatch(/This page was open for too long[^]*href="\/reset\/new\?token=t">Open it again/)
})

test('the way to a provider goes on by itself, and by a link where the browser does not', () => {
  const text = tidyHTML(redirectPage(SITE, { url: 'https://github.com/login/oauth/authorize?a=1&b=2', provider: 'GitHub' }))
  expect(text).toContain('<meta http-equiv="refresh" content="0;url=https://github.com/login/oauth/authorize?a=1&amp;b=2"/>')
  expect(text).toContain('href="https://github.com/login/oauth/authorize?a=1&amp;b=2">Continue with GitHub')
})

test.each(['javascript:alert(1)', 'data:text/html,x', '/sign-in', 'github.com', ''])('the way to %j is refused', (url) => {
  expect(() => redirectPage(SITE, { url, provider: 'GitHub' })).toThrow(TypeError)
})

test('a URL cannot end the attribute that it goes on by', () => {
  const text = tidyHTML(redirectPage(SITE, { url: 'https://github.com/"><script>x</script>\'', provider: 'GitHub' }))
  expect(text).not.toContain('<script>')
  expect(text).toContain('content="0;url=https://github.com/%22%3E%3Cscript%3Ex%3C/script%3E&#39;"')
})
