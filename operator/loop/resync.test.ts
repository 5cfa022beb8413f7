import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { Informer, KubeObject } from '../kube/port.ts'
import { Resync } from './resync.ts'

test('every known object is looked at again each interval, behind changes, until stopped', async () => {
  const clock = new ManualClock()
  const object: KubeObject = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace: 'shop' } }
  const informer: Informer = { synced: Promise.resolve(), get: () => object, list: () => [object], subscribe: () => undefined }
  const seen: string[] = []
  const resync = new Resync({
    clock,
    random: () => 0.5,
    informer,
    enqueue: (ref, priority) => seen.push(`${ref.namespace}/${ref.name} ${priority}`),
  })
  resync.start()
  await clock.advance(599_999)
  expect(seen).toEqual([])
  await clock.advance(1)
  expect(seen).toEqual(['shop/a resync'])
  await clock.advance(600_000)
  expect(seen).toHaveLength(2)
  resync.stop()
  await clock.advance(3_600_000)
  expect(seen).toHaveLength(2)
})
