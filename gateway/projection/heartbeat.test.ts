import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { Heartbeat } from './heartbeat.ts'

test('beats at most forty times a second however many revisions come, and the last beat has the newest', async () => {
  const clock = new ManualClock()
  const beats: number[] = []
  let revision = 10
  const heartbeat = new Heartbeat({
    source: { heartbeat: async (_, acknowledged) => void beats.push(acknowledged.revision), leave: async () => undefined },
    process: 'pod-1/abc',
    clock,
    acknowledgement: () => ({
      epoch: 'epoch-1',
      revision,
      source: 'Redis',
      ready: true,
      version: '1.2.3',
      schemas: [],
      features: [],
      unreadable: [],
      backends: {},
    }),
  })
  heartbeat.start()
  for (let ms = 0; ms < 1_000; ms += 1) {
    revision += 1
    heartbeat.request()
    await clock.advance(1)
  }
  expect(beats.length).toBeGreaterThan(30)
  expect(beats.length).toBeLessThanOrEqual(41)
  await clock.advance(25)
  expect(beats.at(-1)).toBe(1_010)
  await heartbeat.stop()
})
