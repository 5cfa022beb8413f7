/** The verdicts of `make openapi`, which runs nothing here. */
import { expect, test } from 'vitest'
import { failuresOf, rowsOf } from '../openapi/tally.ts'

const good = { 'GET /v1/key': { 200: 3, 401: 2, 405: 7 } }

test('an operation that has answered 200, and errors of clients, is not a failure', () => {
  expect(failuresOf(good, ['GET /v1/key'])).toEqual([])
  expect(rowsOf(good)).toMatchObject([{ operation: 'GET /v1/key', '200 ': '3', '401 ': '2', '404 ': '', other: '7 × 405' }])
  expect(Object.keys(rowsOf(good)[0] ?? {})[0]).toBe('operation')
})

test.each([
  ['that never answered 200', { 'GET /v1/key': { 401: 9 } }, ['GET /v1/key never answered 200']],
  ['that nothing called', {}, ['GET /v1/key never answered 200']],
  ['that answered 5xx', { 'GET /v1/key': { 200: 3, 503: 1 } }, ['GET /v1/key answered 503, 1 times']],
])('an operation %s fails the run', (_, tally, failures) => {
  expect(failuresOf(tally, ['GET /v1/key'])).toEqual(failures)
})
