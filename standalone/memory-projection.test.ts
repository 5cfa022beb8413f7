import { beforeEach, describe, expect, it } from 'vitest'
import { LIVE_FOR_MS } from '#contract/records/revision-log.ts'
import type { ProjectionChange } from '../operator/projection/store.ts'
import { acknowledgement, writer } from '../test/support/records.ts'
import { MemoryProjection } from './memory-projection.ts'

const put = (id: string, body = 'x'): ProjectionChange => ({
  kind: 'key',
  op: 'put',
  id,
  text: `{"v":1,"rev":0,"uid":"${id}","body":"${body}"}`,
})
const ack = acknowledgement({ epoch: 'e1', revision: 10 })

describe('MemoryProjection, beyond the suite of all projections', () => {
  let nowMs = 0
  let projection: MemoryProjection

  beforeEach(async () => {
    nowMs = 1_000_000
    projection = new MemoryProjection({ now: () => nowMs, logLength: 3 })
  })

  it('a reader that fell behind the bounded log sees a gap', async () => {
    await projection.rebuild(writer(), 'e1', 10, [])
    await projection.write(
      writer(),
      'e1',
      ['a', 'b', 'c', 'd', 'e'].map((id) => put(id)),
    )
    const entries = await projection.read(10, 0)
    expect(entries.map((entry) => entry.revision)).toEqual([13, 14, 15])
  })

  it('a waiting reader wakes on a write, on a rebuild and on close, and otherwise after its wait', async () => {
    await projection.rebuild(writer(), 'e1', 10, [])
    expect(await projection.read(10, 1)).toEqual([])
    const woken = projection.read(10, 60_000)
    await projection.write(writer(), 'e1', [put('a')])
    expect((await woken).map((entry) => entry.revision)).toEqual([11])
    const rebuilt = projection.read(11, 60_000)
    await projection.rebuild(writer(), 'e2', 20, [])
    expect(await rebuilt).toEqual([])
    const closing = projection.read(20, 60_000)
    await projection.close()
    expect(await closing).toEqual([])
  })

  it('counts a process as live for five seconds after its heartbeat, and not after it has left', async () => {
    await projection.heartbeat('pod-a/1', ack)
    await projection.heartbeat('pod-b/2', ack)
    await projection.leave('pod-b/2')
    expect(await projection.liveProcesses()).toEqual([{ process: 'pod-a/1', pod: 'pod-a', acknowledgement: ack }])
    nowMs += LIVE_FOR_MS
    expect(await projection.liveProcesses()).toHaveLength(1)
    nowMs += 1
    expect(await projection.liveProcesses()).toEqual([])
  })
})
