import { describe, expect, test } from 'vitest'
import { encodeRequest, encodeResult, readRequest, readResult, REQUEST_ANNOTATION, RESULT_ANNOTATION } from './uninstall-listener.ts'

const NOW = Date.UTC(2026, 0, 1)
const MINUTE = 60_000
const asked = (atMs: number): Record<string, string> => ({ [REQUEST_ANNOTATION]: encodeRequest('one', atMs) })

describe('a request to uninstall', () => {
  test('is read as it was written', () => {
    expect(readRequest(asked(NOW), NOW)).toBe('one')
    expect(readRequest({}, NOW)).toBeUndefined()
  })

  test.each([
    [9 * MINUTE, true],
    [-9 * MINUTE, true], // the clock of the command is ahead
    [10 * MINUTE, false],
    [-10 * MINUTE, false],
  ])('is served %d ms after it was written: %s', (laterMs, isValid) => {
    expect(readRequest(asked(NOW), NOW + laterMs) !== undefined).toBe(isValid)
  })

  test.each(['', ' ', 'one', 'one ', 'one soon', `one Infinity`, ` ${NOW}`])('is ignored if it is malformed: %j', (text) => {
    expect(readRequest({ [REQUEST_ANNOTATION]: text }, NOW)).toBeUndefined()
  })
})

describe('the result', () => {
  const annotations = { [RESULT_ANNOTATION]: encodeResult('one', { released: 500, failed: 2 }) }

  test('is read as it was written', () => {
    expect(readResult(annotations, 'one')).toEqual({ released: 500, failed: 2 })
  })

  test('of another request, or without any annotation, is not a result', () => {
    expect(readResult(annotations, 'two')).toBeUndefined()
    expect(readResult({}, 'one')).toBeUndefined()
  })
})
