import { expect, it } from 'vitest'
import { linkOutcome } from './link-outcome.ts'

const after = (query: string): ReturnType<typeof linkOutcome> => linkOutcome(new URLSearchParams(query))

it('a person who comes from nowhere reads nothing', () => {
  expect(after('provider=github')).toBeUndefined()
})

it('a linked provider is said to be linked', () => {
  expect(after('linked=github')).toEqual({ provider: 'github' })
})

it('an unverified address at the provider says what to do there', () => {
  expect(after('provider=github&error=email_not_verified')?.problem).toContain('Verify the email there')
})

it('an error wins over a link, so that nothing is said to be linked that is not', () => {
  expect(after('linked=github&error=access_denied')?.problem).toContain('told not to go on')
})

it.each(['', 'unheard_of', 'constructor', '__proto__', '<b>You won</b>'])('the code %j from the address bar gets our own words', (code) => {
  expect(after(`error=${encodeURIComponent(code)}`)?.problem).toBe('Something did not work between the provider and this page. Link again.')
})
