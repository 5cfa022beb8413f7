import { expect, test } from 'vitest'
import { clusterSlot } from './cluster-slot.ts'

test.each([
  ['123456789', 12_739],
  ['foo', 12_182],
  ['user1000', 3_443],
])('%s lies in slot %i, as in CLUSTER KEYSLOT', (tag, slot) => {
  expect(clusterSlot(tag)).toBe(slot)
})
