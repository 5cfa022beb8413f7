import { expect, test } from 'vitest'
import type { Log } from '#platform/log.ts'
import { logLines } from './object-lines.ts'

test.each([
  ['shop/bot', { namespace: 'shop', name: 'bot' }],
  ['acme', { name: 'acme' }],
])('the line of object %s has its name, and its namespace if there is one', (name, fields) => {
  const seen: unknown[] = []
  const log = { info: (given: unknown) => void seen.push(given) } as unknown as Log
  logLines(log, [{ level: 'info', kind: 'Account', name, words: 'applied', facts: { change: 'Applied' } }])
  expect(seen).toEqual([{ kind: 'Account', change: 'Applied', ...fields }])
})

test('one line about many objects speaks of them in the plural', () => {
  const seen: unknown[] = []
  const log = { info: (_: unknown, text: unknown) => void seen.push(text) } as unknown as Log
  const words = { words: 'its manifest a.yaml was deleted', manyWords: 'their manifest a.yaml was deleted' }
  const names = ['shop/a', 'shop/b', 'shop/c', 'shop/d']
  logLines(
    log,
    names.map((name) => ({ level: 'info', kind: 'ApiKey', name, ...words, facts: { change: 'Deleted' } })),
  )
  expect(seen).toEqual(['4 ApiKeys: their manifest a.yaml was deleted (shop/a, shop/b, shop/c and 1 more)'])
})
