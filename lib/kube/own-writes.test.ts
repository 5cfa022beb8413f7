import { beforeEach, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { OwnWrites } from './own-writes.ts'
import type { KubeObject } from './port.ts'

let clock: ManualClock
beforeEach(() => {
  clock = new ManualClock()
})

function thing(resourceVersion: string, uid = 'u-1'): KubeObject {
  return { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace: 'shop', uid, resourceVersion } }
}

test('after a write the written object is read until the cache has caught up', () => {
  const writes = new OwnWrites(clock)
  writes.remember(thing('12'))
  expect(writes.newest(thing('9')).metadata.resourceVersion).toBe('12')
  expect(writes.newest(thing('12')).metadata.resourceVersion).toBe('12')
  expect(writes.size).toBe(0)
  expect(writes.newest(thing('9')).metadata.resourceVersion).toBe('9')
})

test('an older answer that arrives late does not replace a newer one', () => {
  const writes = new OwnWrites(clock)
  writes.remember(thing('12'))
  writes.remember(thing('11'))
  expect(writes.newest(thing('9')).metadata.resourceVersion).toBe('12')
})

test('an object of the same name that was created again is another object', () => {
  const writes = new OwnWrites(clock)
  writes.remember(thing('12', 'old'))
  expect(writes.newest(thing('9', 'new')).metadata.uid).toBe('new')
})

test('the number of remembered writes is bounded', () => {
  const writes = new OwnWrites(clock)
  for (let index = 0; index < 10_000; index += 1) writes.remember(thing('12', `u-${index}`))
  expect(writes.size).toBeLessThanOrEqual(4_096)
  expect(writes.newest(thing('9', 'u-9999')).metadata.resourceVersion).toBe('12')
})

test('the lag of the watch is the age of the oldest write that it has not delivered', async () => {
  const writes = new OwnWrites(clock)
  writes.remember(thing('12', 'first'))
  await clock.advance(70)
  writes.remember(thing('13', 'second'))
  await clock.advance(30)
  expect(writes.watchLagMs).toBe(100)
  writes.delivered(thing('11', 'first')) // an older event
  expect(writes.watchLagMs).toBe(100)
  writes.delivered(thing('12', 'first'))
  expect(writes.watchLagMs).toBe(30)
  writes.forget('second')
  expect(writes.watchLagMs).toBe(0)
})

test('a write that is never delivered counts for 5 s, and does not hide later ones', async () => {
  const writes = new OwnWrites(clock)
  writes.remember(thing('12', 'lost'))
  await clock.advance(5_001)
  expect(writes.watchLagMs).toBe(0)
  writes.remember(thing('13', 'late'))
  await clock.advance(40)
  expect(writes.watchLagMs).toBe(40)
})
