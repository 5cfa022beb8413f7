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
const del = (id: string): ProjectionChange => ({ kind: 'key', op: 'del', id })
const ack = acknowledgement({ epoch: 'e1', revision: 10 })

describe('MemoryProjection', () => {
  let nowMs = 0
  let projection: MemoryProjection

  beforeEach(async () => {
    nowMs = 1_000_000
    projection = new MemoryProjection({ now: () => nowMs, logLength: 3 })
  })

  const records = async (epoch = 'e1'): Promise<Record<string, string>> => {
    const all: Array<readonly [string, string]> = []
    await projection.scan(epoch, 'key', (batch) => void all.push(...batch))
    return Object.fromEntries(all)
  }

  it('is empty until an operator has built it, and asks a writer to build it', async () => {
    expect(await projection.meta()).toBeUndefined()
    expect(await projection.write(writer(), 'e1', [put('a')])).toEqual({ outcome: 'foreign-epoch' })
    expect(await projection.read(0, 0)).toEqual([])
  })

  it('a rebuild switches epoch and revision at once and stamps the revision into every record', async () => {
    expect(await projection.rebuild(writer(), 'e1', 10, [put('a'), put('b')])).toEqual({ outcome: 'written', revisions: [10, 10] })
    expect(await projection.meta()).toEqual({ schema: 1, epoch: 'e1', revision: 10, fence: 1, installation: '' })
    expect(await records()).toEqual({ a: '{"v":1,"rev":10,"uid":"a","body":"x"}', b: '{"v":1,"rev":10,"uid":"b","body":"x"}' })
    expect(await records('e0')).toEqual({})
    expect(await projection.ids('e1', 'key')).toEqual(['a', 'b'])
    expect(await projection.ids('e1', 'model')).toEqual([])
    expect(await projection.ids('e0', 'key')).toEqual([])
  })

  it('gives each change its own revision, an unchanged record none, and logs what changed in order', async () => {
    await projection.rebuild(writer(), 'e1', 10, [put('a')])
    const outcome = await projection.write(writer(), 'e1', [put('a'), put('a', 'y'), put('b'), del('a'), del('ghost')])
    expect(outcome).toEqual({ outcome: 'written', revisions: [10, 11, 12, 13, 13] })
    expect(await projection.read(10, 0)).toEqual([
      { revision: 11, kind: 'key', op: 'put', id: 'a' },
      { revision: 12, kind: 'key', op: 'put', id: 'b' },
      { revision: 13, kind: 'key', op: 'del', id: 'a' },
    ])
    expect(await projection.read(12, 0)).toHaveLength(1)
    expect(await projection.read(13, 0)).toEqual([])
    expect(Object.keys(await records())).toEqual(['b'])
  })

  it('refuses a lower fence for writes and rebuilds, and remembers a higher one', async () => {
    await projection.rebuild(writer(2), 'e1', 10, [])
    expect(await projection.write(writer(), 'e1', [put('a')])).toEqual({ outcome: 'fenced', fence: 2 })
    expect(await projection.rebuild(writer(), 'e2', 20, [])).toEqual({ outcome: 'fenced', fence: 2 })
    await projection.write(writer(5), 'e1', [])
    expect(await projection.write(writer(4), 'e1', [put('a')])).toEqual({ outcome: 'fenced', fence: 5 })
    expect(await projection.write(writer(5), 'other', [put('a')])).toEqual({ outcome: 'foreign-epoch' })
    expect(await records()).toEqual({})
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
