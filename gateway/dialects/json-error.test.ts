import { describe, expect, test } from 'vitest'
import { jsonError } from './json-error.ts'

describe('the place of an error', () => {
  test.each([
    ['{"model":', 'line 1, column 10: the text ends too early'],
    ['{"model":"llama"', 'line 1, column 17: the text ends too early'],
    ['{"model":"lla', 'line 1, column 14: the text ends within a string'],
    ['{\n  "model": "llama",\n}', 'line 3, column 1: trailing comma after the last entry'],
    ['[1,]', 'line 1, column 4: trailing comma after the last entry'],
    ['{"a":}', 'line 1, column 6: a value is expected'],
    ['{"a" "b"}', 'line 1, column 6: a colon is expected'],
    ['{"a":1 "b":2}', 'line 1, column 8: a comma or } is expected'],
    ['[1 2]', 'line 1, column 4: a comma or ] is expected'],
    ["{'model':1}", 'line 1, column 2: JSON has double quotes, not single ones'],
    ['{model:1}', 'line 1, column 2: a field name in double quotes or } is expected'],
    ['{"a":1,,}', 'line 1, column 8: a field name in double quotes is expected'],
    ['{"a":True}', 'line 1, column 6: a value is expected'],
    ['{"a":01}', 'line 1, column 6: a value is expected'],
    ['{"a":"x\ny"}', 'line 1, column 8: a string has a line break or another control character'],
    ['{"a":"\\x"}', 'line 1, column 7: a string has an unknown escape'],
    ['{} {}', 'line 1, column 4: the JSON value has ended, and more follows'],
    ['model=llama', 'line 1, column 1: a value is expected'],
    ['', 'line 1, column 1: the text ends too early'],
    ['[}', 'line 1, column 2: a value or ] is expected'],
  ])('%j is at %s', (text, error) => {
    expect(() => JSON.parse(text) as unknown).toThrow()
    expect(jsonError(text)).toBe(error)
  })

  test('nothing of the text is repeated', () => {
    expect(jsonError('{"password": hunter2}')).not.toContain('hunter')
  })

  test('an error after the first 32 Ki characters has no place, so that longer texts cost no more', () => {
    expect(jsonError(`["${'x'.repeat(2 ** 15)}" oops]`)).toBeUndefined()
  })
})
