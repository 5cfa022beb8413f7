import { expect, test } from 'vitest'
import { ChangeRate } from './change-rate.ts'

let nowMs = 0
const allowed = (rate: ChangeRate, account: string, tries: number): number => {
  let count = 0
  for (let at = 0; at < tries; at += 1) {
    try {
      rate.take(account)
      count += 1
    } catch {
      // refused
    }
  }
  return count
}

test('an account may make thirty changes at once, then five a second, and other accounts are not held back', () => {
  const rate = new ChangeRate({ monotonic: () => nowMs })
  expect(allowed(rate, 'busy', 100)).toBe(30)
  expect(allowed(rate, 'other', 1)).toBe(1)
  nowMs += 2_000
  expect(allowed(rate, 'busy', 100)).toBe(10)
  nowMs += 3_600_000
  expect(allowed(rate, 'busy', 100)).toBe(30)
})

test('a refusal is 429 and says how long to wait', () => {
  const rate = new ChangeRate({ monotonic: () => nowMs })
  allowed(rate, 'busy', 30)
  expect(() => rate.take('busy')).toThrow(expect.objectContaining({ code: 'too-many-requests', details: { retryAfter: 1 } }))
})

test('accounts that have rested are forgotten, and busy ones are not', () => {
  const rate = new ChangeRate({ monotonic: () => nowMs })
  for (let at = 0; at < 9_999; at += 1) rate.take(`rested-${at}`)
  nowMs += 1_000
  allowed(rate, 'busy', 100)
  for (let at = 0; at < 3; at += 1) rate.take(`new-${at}`)
  expect(allowed(rate, 'busy', 100)).toBe(0)
})
