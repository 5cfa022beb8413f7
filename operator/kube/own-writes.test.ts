import { expect, test } from 'vitest'
import { OwnWrites } from './own-writes.ts'
import type { KubeObject } from './port.ts'

function thing(resourceVersion: string, uid = 'u-1'): KubeObject {
  return { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace: 'shop', uid, resourceVersion } }
}

test('after a write the written object is read until the cache has caught up', () => {
  const writes = new OwnWrites()
  writes.remember(thing('12'))
  expect(writes.newest(thing('9')).metadata.resourceVersion).toBe('12')
  expect(writes.newest(thing('12')).metadata.resourceVersion).toBe('12')
  expect(writes.size).toBe(0)
  expect(writes.newest(thing('9')).metadata.resourceVersion).toBe('9')
})

test('an older answer that arrives late does not replace a newer one', () => {
  const writes = new OwnWrites()
  writes.remember(thing('12'))
  writes.remember(thing('11'))
  expect(writes.newest(thing('9')).metadata.resourceVersion).toBe('12')
})

test('an object of the same name that was created again is another object', () => {
  const writes = new OwnWrites()
  writes.remember(thing('12', 'old'))
  expect(writes.newest(thing('9', 'new')).metadata.uid).toBe('new')
})

test('the number of remembered writes is bounded', () => {
  const writes = new OwnWrites()
  for (let index = 0; index < 10_000; index += 1) writes.remember(thing('12', `u-${index}`))
  expect(writes.size).toBeLessThanOrEqual(4_096)
  expect(writes.newest(thing('9', 'u-9999')).metadata.resourceVersion).toBe('12')
})
