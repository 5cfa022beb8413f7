import { expect, test } from 'vitest'
import { PendingWrites } from './projection.ts'
import type { ProjectionChange } from './store.ts'

const put = (id: string, text = 'one'): ProjectionChange => ({ kind: 'key', op: 'put', id, text })

test('a record that was urgent stays urgent: the older change may not have arrived', () => {
  const pending = new PendingWrites()
  pending.add(put('b'), 'change')
  pending.add(put('a', 'suspended'), 'urgent')
  pending.add(put('a', 'and renamed'), 'background')
  expect(pending.next(10)).toEqual([put('a', 'and renamed'), put('b')])
})

test('a key and a model with the same id are two records', () => {
  const pending = new PendingWrites()
  pending.add(put('a'), 'change')
  pending.add({ kind: 'model', op: 'del', id: 'a' }, 'change')
  expect(pending.size).toBe(2)
  expect(pending.has({ kind: 'model', id: 'a' })).toBe(true)
  expect(pending.has({ kind: 'model', id: 'b' })).toBe(false)
})
