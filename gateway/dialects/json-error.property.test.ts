import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonError } from './json-error.ts'

test('any text that JSON.parse accepts has no error, and any other text has one', () => {
  const parses = (text: string): boolean => {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
  const damaged = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', '"', ',', '}', ']', '\\', '\n', '0', '-', '.', 'e', 't', ':'))
    .map(([text, at, piece]) => {
      const place = at % (text.length + 1)
      return text.slice(0, place) + piece + text.slice(place + 1)
    })
  fc.assert(
    fc.property(fc.oneof(fc.json(), damaged), (text) => {
      expect(jsonError(text) === undefined).toBe(parses(text))
    }),
  )
})
