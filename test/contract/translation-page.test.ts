/** docs/translation.md numbers the known failures of translators. Each has a test that bears its number. */
import { expect, test } from 'vitest'
import { filesBelow, read } from '../support/documents.ts'
import { sectionOf, tableOf } from '../support/markdown-page.ts'

const TITLE = /\b(?:it|test|describe)(?:\.each\([^]*?\))?\(\s*['"`](X[^'"`]*)|^ {2,4}\[?\s*['"`](X\d[^'"`]*)['"`][:,]/gm

test('each known failure has a test under its number, and no test has another number', () => {
  const titles = filesBelow('gateway')
    .filter((path) => path.endsWith('.test.ts'))
    .flatMap((path) => [...read(path).matchAll(TITLE)].map(([, title, row]) => title ?? row ?? ''))
  const tested = new Set(titles.flatMap((title) => [...title.matchAll(/\bX(\d+)\b/g)].map(([, number]) => Number(number))))
  const rows = tableOf(sectionOf(read('docs/translation.md'), '## Known failures of translators'), 'case').rows
  const listed = rows.map((row) => Number(row['case']?.slice(1)))
  expect(listed).toEqual(Array.from({ length: 28 }, (_, index) => index + 1))
  expect([...tested].toSorted((a, b) => a - b)).toEqual(listed)
})
