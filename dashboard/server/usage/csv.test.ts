import { expect, test } from 'vitest'
import { cellOf, csvOf } from './csv.ts'

test.each([
  ['=HYPERLINK("http://evil.example")', `"'=HYPERLINK(""http://evil.example"")"`],
  ['+1+cmd', "'+1+cmd"],
  ['-1+cmd', "'-1+cmd"],
  ['-', "'-"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1', `"'\r=1"`],
  ['\n=1', `"'\n=1"`],
])('a spreadsheet does not run %j', (text, cell) => {
  expect(cellOf(text)).toBe(cell)
})

test.each([
  ['-12.50', '-12.50'],
  ['-3', '-3'],
  [42, '42'],
  ['a,b', '"a,b"'],
  ['a "b"', '"a ""b"""'],
  ['a=b', 'a=b'],
])('%j stays what it is', (value, cell) => {
  expect(cellOf(value)).toBe(cell)
})

test('a file has a header and ends each line as RFC 4180 says', () => {
  expect(csvOf(['day', 'cost'], [['2026-11-24', '1.25']])).toBe('day,cost\r\n2026-11-24,1.25\r\n')
})
