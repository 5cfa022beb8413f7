import { describe, expect, test } from 'vitest'
import { checkFormat, formatHead, oldestVersion, parseFormat, UnknownVersion } from './format.ts'

describe('a durable text', () => {
  test('of a version that this build reads is returned unchanged, whatever else it holds', () => {
    const value = { v: 1, needs: [], later: { added: true } }
    expect(checkFormat(value)).toBe(value)
    expect(parseFormat('{"v":1,"x":2}')).toEqual({ v: 1, x: 2 })
  })

  test.each([
    ['another version', { v: 2 }, 'version 2'],
    ['a need that this build lacks', { v: 1, needs: ['limits2', 'budgets'] }, 'needs limits2, budgets'],
    ['a need that is not a name', { v: 1, needs: [7] }, 'needs 7'],
  ])('with %s is not damaged: it is for another build', (_, value, message) => {
    expect(() => checkFormat(value)).toThrow(new UnknownVersion(message))
  })

  test.each([
    ['no object', []],
    ['nothing', null],
    ['no version', { rev: 1 }],
    ['a version in words', { v: 'one' }],
    ['a version of 0', { v: 0 }],
    ['needs that are not a list', { v: 1, needs: 'limits2' }],
  ])('that is %s is damaged', (_, value) => {
    expect(() => checkFormat(value)).toThrow(TypeError)
  })

  test('that is not JSON is damaged', () => {
    expect(() => parseFormat('{"v":2')).toThrow(SyntaxError)
  })

  test('begins with its version, and names needs only if there are some', () => {
    expect(JSON.stringify(formatHead(1))).toBe('{"v":1}')
    expect(JSON.stringify(formatHead(1, ['limits2']))).toBe('{"v":1,"needs":["limits2"]}')
    expect(oldestVersion()).toBe(1)
  })
})
