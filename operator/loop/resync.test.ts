import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { ObjectCache } from '#kube/object-cache.ts'
import { type KubeObject, refOf } from '#kube/port.ts'
import { resync } from './resync.ts'

function startedResync(count: number): { stop: () => void; clock: ManualClock; seen: string[]; cache: ObjectCache<KubeObject> } {
  const clock = new ManualClock()
  const cache = new ObjectCache<KubeObject>((error) => expect.fail(String(error)))
  for (let at = 0; at < count; at += 1) cache.put(thing(at))
  const seen: string[] = []
  const enqueue = (item: { ref: { name: string } }, level: string): void => void seen.push(`${item.ref.name} ${level}`)
  const stopped = new AbortController()
  void resync({ clock, random: () => 0.5, kind: 'Thing', informer: cache, enqueue }, stopped.signal)
  return { stop: () => stopped.abort(), clock, seen, cache }
}

function thing(at: number): KubeObject {
  return { apiVersion: 'v1', kind: 'Thing', metadata: { name: `t-${at}`, namespace: 'shop' } }
}

test('every known object is reconciled once per interval, in the background, until stopped', async () => {
  const { stop, clock, seen } = startedResync(1)
  await clock.advance(599_999)
  expect(seen).toEqual([])
  await clock.advance(1)
  expect(seen).toEqual(['t-0 background'])
  await clock.advance(600_000)
  expect(seen).toHaveLength(2)
  stop()
  await clock.advance(3_600_000)
  expect(seen).toHaveLength(2)
  expect(clock.pending).toBe(0)
}, 30_000)

test('many objects are spread over the interval instead of being read at once', async () => {
  const { stop, clock, seen } = startedResync(12_000)
  await clock.advance(6_000)
  expect(seen).toHaveLength(120)
  await clock.advance(54_000)
  expect(seen).toHaveLength(1_200)
  stop()
})

test('no second has more than 25 objects, whatever their number, and the round then takes as long as it needs', async () => {
  const { stop, clock, seen } = startedResync(30_000)
  await clock.advance(1_000)
  expect(seen).toHaveLength(25)
  await clock.advance(599_000)
  expect(seen).toHaveLength(15_000)
  await clock.advance(600_000)
  expect(new Set(seen).size).toBe(30_000)
  await clock.advance(1_000)
  expect(seen).toHaveLength(30_025)
  stop()
})

test('an object that has left the cache is not reconciled, and one that came since follows in the next round', async () => {
  const { stop, clock, seen, cache } = startedResync(600)
  await clock.advance(300_000)
  for (let at = 300; at < 600; at += 1) cache.forget(refOf(thing(at)))
  await clock.advance(299_999)
  expect(seen).toHaveLength(300)
  cache.put(thing(600))
  await clock.advance(600_001)
  expect(seen.slice(300).toSorted()).toEqual([...Array(300).keys(), 600].map((at) => `t-${at} background`).toSorted())
  stop()
}, 30_000)
