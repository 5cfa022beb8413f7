import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { KubeObject } from '#kube/port.ts'
import { resync } from './resync.ts'

function startedResync(count: number): { stop: () => void; clock: ManualClock; seen: string[] } {
  const clock = new ManualClock()
  const objects: KubeObject[] = Array.from({ length: count }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name: `t-${at}`, namespace: 'shop' },
  }))
  const seen: string[] = []
  const kinds = [{ kind: 'Thing', informer: { list: () => objects } }]
  const enqueue = (item: { ref: { name: string } }, level: string): void => void seen.push(`${item.ref.name} ${level}`)
  const stopped = new AbortController()
  void resync({ clock, random: () => 0.5, kinds, enqueue }, stopped.signal)
  return { stop: () => stopped.abort(), clock, seen }
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
