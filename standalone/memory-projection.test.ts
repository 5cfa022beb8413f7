import { expect, it } from 'vitest'
import { LIVE_FOR_MS } from '#contract/records/revision-log.ts'
import type { ProjectionChange } from '../operator/projection/store.ts'
import { acknowledgement, writer } from '../test/support/records.ts'
import { MemoryProjection } from './memory-projection.ts'

const put = (id: string): ProjectionChange => ({ kind: 'key', op: 'put', id, text: `{"v":1,"rev":0,"uid":"${id}"}` })

it('a reader that fell behind the bounded log sees a gap', async () => {
  const projection = new MemoryProjection({ logLength: 3 })
  await projection.rebuild(writer(), 'e1', 10, [])
  await projection.write(writer(), 'e1', ['a', 'b', 'c', 'd', 'e'].map(put))
  expect((await projection.read(10, 0)).map((entry) => entry.revision)).toEqual([13, 14, 15])
})

it('a waiting reader wakes on a rebuild and on close, and otherwise after its wait', async () => {
  const projection = new MemoryProjection()
  await projection.rebuild(writer(), 'e1', 10, [])
  expect(await projection.read(10, 1)).toEqual([])
  const rebuilt = projection.read(11, 60_000)
  await projection.rebuild(writer(), 'e2', 20, [])
  expect(await rebuilt).toEqual([])
  const closing = projection.read(20, 60_000)
  await projection.close()
  expect(await closing).toEqual([])
})

it('counts a process as live for five seconds after its heartbeat', async () => {
  let nowMs = 1_000_000
  const projection = new MemoryProjection({ now: () => nowMs })
  const ack = acknowledgement({ epoch: 'e1', revision: 10 })
  await projection.heartbeat('pod-a/1', ack)
  nowMs += LIVE_FOR_MS
  expect(await projection.liveProcesses()).toEqual([{ process: 'pod-a/1', pod: 'pod-a', acknowledgement: ack }])
  nowMs += 1
  expect(await projection.liveProcesses()).toEqual([])
})
