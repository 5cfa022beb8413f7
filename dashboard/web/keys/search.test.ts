import { expect, it } from 'vitest'
import { isHidden, matches } from './search.ts'

const KEY = { name: 'checkout-bot production', hint: 'sk-hg1b7…Qm4T' }

it.each(['', '  ', 'BOT', ' checkout ', 'sk-hg1b', 'qm4t', 'sk-hg1b7aaaaaaaaaaaaaaaaaaaaaaaaQm4T'])('"%s" finds the key', (words) => {
  expect(matches(KEY, words)).toBe(true)
})

it.each(['checkuot', 'sk-hg1c', 'sk-hg1b7aaaaaaaaaaaaaaaaaaaaaaaaQm4U'])('"%s" does not find the key', (words) => {
  expect(matches(KEY, words)).toBe(false)
})

it('a key without a visible part is not found by every text', () => {
  expect(matches({ name: 'a', hint: '' }, 'zzz')).toBe(false)
})

it('a key is hidden once its end is proven, and not while gateways still answer for the key', () => {
  expect([isHidden({ state: 'Revoked' }), isHidden({ state: 'Revoking' })]).toEqual([true, false])
})
