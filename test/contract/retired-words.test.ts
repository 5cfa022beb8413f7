/**
 * CONTRIBUTING.md lists words that this project no longer uses, and what to write instead. This test finds the words that the list marks as
 * held by a test, in every text of the repository, also as a part of an identifier.
 */
import { describe, expect, test } from 'vitest'
import { filesBelow, read } from '../support/documents.ts'
import { rowsOf, sectionOf } from '../support/markdown-page.ts'

const LIST = 'CONTRIBUTING.md'
/** This file: its own list names the words. */
const SELF = 'test/contract/retired-words.test.ts'
const HEADING = '### Retired words'

/** A retired word in a file that may hold the word, and why. Remove a row once the file has no such word. */
const EXCEPTIONS: readonly { readonly word: string; readonly files: readonly string[]; readonly reason: string }[] = []

const TEXTS = /\.(ts|md|ya?ml|sh|tpl|txt|lua|json|css|html)$|(^|\/)(Makefile|Dockerfile)$|^\.ci\//
const files = filesBelow('.').filter((path) => TEXTS.test(path) && path !== 'package-lock.json' && path !== SELF)
const words = rowsOf(sectionOf(read(LIST), HEADING), 'retired')
  .filter((row) => row['held by a test'] === 'yes')
  .flatMap((row) => (row['retired'] ?? '').split(', '))

describe.each(words)('%s', (word) => {
  test('occurs only in the files that are listed with a reason', () => {
    const allowed = EXCEPTIONS.filter((row) => row.word === word).flatMap((row) => row.files)
    const found = files.filter((path) => isIn(word, textOf(path)))
    expect(found.toSorted()).toEqual(allowed.toSorted())
  })
})

test('the words are found in identifiers and in other forms, and not within other words', () => {
  expect(isIn('calm', 'isCalm')).toBe(true)
  expect(isIn('calm', 'CALM_MS')).toBe(true)
  expect(isIn('cure', 'what cures it')).toBe(true)
  expect(isIn('cure', 'secure, obscure')).toBe(false)
  expect(isIn('lane', 'planes')).toBe(false)
  expect(isIn('a look', 'a look at the Secret')).toBe(true)
  expect(isIn('a look', 'a look-up of a name')).toBe(false)
})

test('every exception names a word of the list', () => {
  expect(EXCEPTIONS.map(({ word }) => word).filter((word) => !words.includes(word))).toEqual([])
})

function isIn(word: string, text: string): boolean {
  const separate = text.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ')
  return new RegExp(`(?<!\\w)${word}(s|d|es|ed)?(?!\\w|-up)`, 'i').test(separate)
}

/** The text of a file; of the list itself without the list. */
function textOf(path: string): string {
  return path === LIST ? read(path).replace(sectionOf(read(LIST), HEADING), '') : read(path)
}
