import { expect, it } from 'vitest'
import { linkProblem } from './link-problem.ts'

it('an unverified address at the provider says what to do there', () => {
  expect(linkProblem('email_not_verified')).toContain('Verify the email there')
})

it.each(['', 'unheard_of', 'constructor', '__proto__', '<b>You won</b>'])('the code %j from the address bar gets our own words', (code) => {
  expect(linkProblem(code)).toBe('Something did not work between the provider and this page. Link again.')
})
