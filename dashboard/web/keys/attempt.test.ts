import { expect, it } from 'vitest'
import { newAttempt } from './attempt.ts'

it('each dialog draws another attempt, of the form that the server takes', () => {
  const [one, other] = [newAttempt(), newAttempt()]
  expect(one).toMatch(/^[\w-]{16,64}$/)
  expect(one).not.toBe(other)
})
