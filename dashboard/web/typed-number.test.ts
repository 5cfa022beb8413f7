import { expect, it } from 'vitest'
import { plainNumber } from './typed-number.ts'

it.each([
  ['25.00', '25.00'],
  [' 200,000 ', '200000'],
  ['1,250.50', '1250.50'],
  ['1,2', '1,2'],
  ['25,00', '25,00'],
  ['1,250,5', '1,250,5'],
  ['', ''],
])('%j is read as %j', (typed, read) => {
  expect(plainNumber(typed)).toBe(read)
})
