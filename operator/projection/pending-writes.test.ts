import { expect, test } from 'vitest'
import { PendingWrites } from './pending-writes.ts'
import type { ProjectionChange } from './store.ts'

const put = (id: string, text = 'one'): ProjectionChange => ({ kind: 'key', op: 'put', id, text })
const del = (id: string): ProjectionChange => ({ kind: 'key', op: 'del', id })
const idsOf = (changes: readonly ProjectionChange[]): string[] => changes.map(({ id }) => id)

test('urgent changes come first, and among changes of one level the older change', () => {
  const pending = new PendingWrites()
  pending.add(put('a'), 'change')
  pending.add(put('b'), 'background')
  pending.add(put('c'), 'urgent')
  pending.add(put('d'), 'urgent')
  expect(idsOf(pending.next(10))).toEqual(['c', 'd', 'a', 'b'])
  expect(idsOf(pending.next(3))).toEqual(['c', 'd', 'a'])
  expect(idsOf(pending.all())).toEqual(['c', 'd', 'a', 'b'])
})

test('a newer change of one record replaces the older one', () => {
  const pending = new PendingWrites()
  pending.add(put('a'), 'change')
  pending.add(del('a'), 'change')
  expect(pending.next(10)).toEqual([del('a')])
  expect(pending.size).toBe(1)
})

test('a record that was urgent stays urgent: the older change may not have arrived', () => {
  const pending = new PendingWrites()
  pending.add(put('b'), 'change')
  pending.add(put('a', 'suspended'), 'urgent')
  pending.add(put('a', 'and renamed'), 'background')
  expect(pending.next(10)).toEqual([put('a', 'and renamed'), put('b')])
})

test('a change that becomes urgent moves to the front', () => {
  const pending = new PendingWrites()
  pending.add(put('b'), 'change')
  pending.add(put('a'), 'change')
  pending.add(del('a'), 'urgent')
  expect(pending.next(10)).toEqual([del('a'), put('b')])
  expect(pending.size).toBe(2)
})

test('a change that `next` returned stays pending until the store has it', () => {
  const pending = new PendingWrites()
  const change = put('a')
  pending.add(change, 'change')
  expect(pending.next(10)).toEqual([change])
  expect(pending.has(change)).toBe(true)
  pending.written(change)
  expect(pending.has(change)).toBe(false)
  expect(pending.size).toBe(0)
})

test('a newer change of the record stays pending when the older one arrives', () => {
  const pending = new PendingWrites()
  const older = put('a')
  pending.add(older, 'urgent')
  pending.add(put('a'), 'change') // the same text: another change all the same
  pending.written(older)
  expect(pending.size).toBe(1)
})

test('a key and a model with the same id are two records', () => {
  const pending = new PendingWrites()
  pending.add(put('a'), 'change')
  pending.add({ kind: 'model', op: 'del', id: 'a' }, 'change')
  expect(pending.size).toBe(2)
  expect(pending.has({ kind: 'model', id: 'a' })).toBe(true)
  expect(pending.has({ kind: 'model', id: 'b' })).toBe(false)
})
