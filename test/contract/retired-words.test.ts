/** Finds words that this project no longer uses in every text of the repository, also as a part of an identifier. */
import { expect, test } from 'vitest'
import { filesBelow, read } from '../support/documents.ts'

/** This file: its own lists name the words. */
const SELF = 'test/contract/retired-words.test.ts'

const RETIRED: ReadonlyArray<readonly [word: string, instead: string]> = [
  ['calm', 'idle'],
  ['torso', 'truncated answer'],
  ['rescue', 'recover'],
  ['cure', 'fix, remedy'],
  ['judge', 'check, validate'],
  ['lane', 'priority queue'],
  ['wish', 'pending write'],
  ['wheel', 'ticker'],
  ['a look', 'a read'],
  ['border', 'boundary'],
  ['whoever', 'the caller, the client, …'],
  ['anew', 'again, from scratch'],
]
// These have other meanings too, so a reviewer finds them: tell (write status, report), act (apply, take effect), gone (deleted, orphaned), fault
// (error, failure), meanwhile (until then), nobody (no caller), line of the keyring (entry), target and server (endpoint), token for a secret
// (credential: tokens are counted), figures (metrics, values).

const TEXTS = /\.(tsx?|md|ya?ml|sh|tpl|txt|lua|json|css|html)$|(^|\/)(Makefile|Dockerfile)$|^\.ci\//
const files = filesBelow('.').filter((path) => TEXTS.test(path) && path !== 'package-lock.json' && path !== SELF)

/** Words that the syntax of a language uses. */
const SYNTAX: Readonly<Record<string, RegExp>> = { border: /\.css$/ }

test.each(RETIRED)('no text says %s; write: %s', (word) => {
  expect(files.filter((path) => !SYNTAX[word]?.test(path) && isIn(word, read(path)))).toEqual([])
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

function isIn(word: string, text: string): boolean {
  const separate = text.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ')
  return new RegExp(`(?<!\\w)${word}(s|d|es|ed)?(?!\\w|-up)`, 'i').test(separate)
}
