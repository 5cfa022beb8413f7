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
