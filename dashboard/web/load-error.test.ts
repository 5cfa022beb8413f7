import { expect, it } from 'vitest'
import { Refused, Unreachable } from './api.ts'
import { loadErrorOf } from './load-error.ts'

const away = new Unreachable('away')
const refused = new Refused({ code: 'unavailable', message: 'Usage is away.', requestID: 'r' })

it('what could not be loaded is said, also beside older data', () => {
  expect([loadErrorOf({ data: undefined, error: refused }), loadErrorOf({ data: {}, error: refused })]).toEqual([refused, refused])
  expect(loadErrorOf({ data: undefined, error: away })).toBe(away)
})

it('a page without a connection keeps its data, and the banner of all pages says why they are old', () => {
  expect([loadErrorOf({ data: {}, error: away }), loadErrorOf({ data: {}, error: null })]).toEqual([undefined, undefined])
})
