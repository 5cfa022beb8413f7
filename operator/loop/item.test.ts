import { expect, test } from 'vitest'
import { itemKey, itemOf } from './item.ts'

test('an item comes back from its key, a cluster-scoped one and one with dots too', () => {
  for (const ref of [
    { namespace: 'shop', name: 'bot.example' },
    { namespace: '', name: 'plan.gold' },
  ])
    expect(itemOf(itemKey({ kind: 'ApiKey', ref }))).toEqual({ kind: 'ApiKey', ref })
})
