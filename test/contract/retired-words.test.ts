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
const EXCEPTIONS: readonly { readonly word: string; readonly files: readonly string[]; readonly reason: string }[] = [
  {
    word: 'judge',
    reason: 'identifiers that are still to be renamed to check and validate',
    files: [
      'gateway/auth/authenticate.ts',
      'gateway/auth/credential-header.test.ts',
      'gateway/auth/credential-header.ts',
      'gateway/auth/key-table.ts',
      'gateway/dialects/backend-events.ts',
      'gateway/http/read-body.ts',
      'gateway/projection/keyring-watch.test.ts',
      'gateway/shared/backend-address.test.ts',
      'gateway/shared/backend-address.ts',
      'gateway/shared/credential.property.test.ts',
      'gateway/shared/credential.ts',
      'gateway/upstream/model-entry.ts',
      'gateway/upstream/url-guard.test.ts',
      'gateway/upstream/url-guard.ts',
      'operator/kube/leader.test.ts',
      'operator/served-model/desired.ts',
      'operator/served-model/selector.test.ts',
      'test/bench/limits-soak.ts',
      'test/bench/limits.ts',
      'test/bench/main.ts',
      'test/bench/report.ts',
      'test/contract/bench.test.ts',
      'test/contract/examples.test.ts',
      'test/contract/limit-manifests.ts',
      'test/integration/crd-server.test.ts',
      'test/support/api-server.ts',
      'test/support/crash-proxy.ts',
      'test/support/kube-admin.ts',
    ],
  },
  {
    word: 'cure',
    reason: 'texts of make run that are still to be rewritten',
    files: ['standalone/durable-ledger.test.ts', 'standalone/manifest-folder.ts'],
  },
  { word: 'a look', reason: 'the same', files: ['standalone/manifest-folder.ts'] },
]

const TEXTS = /\.(ts|md|ya?ml|sh|tpl|txt|lua|json|css|html)$|(^|\/)(Makefile|Dockerfile)$|^\.ci\//
const files = filesBelow('.').filter((path) => TEXTS.test(path) && path !== 'package-lock.json' && path !== SELF)
const words = rowsOf(sectionOf(read(LIST), HEADING), 'retired')
  .filter((row) => row['held by a test'] === 'yes')
  .flatMap((row) => (row['retired'] ?? '').split(', '))

describe.each(words)('%s', (word) => {
  test('stands nowhere but in the files that are listed with a reason', () => {
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
