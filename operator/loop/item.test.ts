import { expect, test } from 'vitest'
import { itemKey, itemOf } from './item.ts'

test('an item comes back from its key, a cluster-scoped one and one with dots too', () => {
  for (const ref of [
    { namespace: 'shop', name: 'bot.example' },
    { namespace: '', name: 'plan.gold' },
  ])
    expect(itemOf(itemKey({ kind: 'ApiKey', ref }))).toEqual({ kind: 'ApiKey', ref })
})

test('objects of two kinds that share a name are two items', () => {
  const ref = { namespace: 'shop', name: 'bot' }
  expect(itemKey({ kind: 'ApiKey', ref })).not.toBe(itemKey({ kind: 'ServedModel', ref }))
})
