import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { RedisProjectionSource } from '../../gateway/auth/redis-projection.ts'
import { RedisConnection, type RedisSettings } from '../../gateway/shared/redis.ts'
import { redisKeys } from '../../gateway/shared/redis-keys.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import type { ProjectionChange } from '../../operator/projection/store.ts'
import { describeProjection, type ProjectionSubject } from '../contract/projection.suite.ts'
import { issuedKey, recordText } from '../support/records.ts'
import { RedisPart, type RedisUser } from '../support/redis-part.ts'

const IP = process.env.LAB_IP ?? '127.0.0.1'
const folder = mkdtempSync(join(tmpdir(), 'headgate-projection-'))
const keys = redisKeys('hg')
const closers: Array<() => void> = []
let redis: RedisPart

beforeAll(async () => {
  redis = await RedisPart.start(folder, IP)
})
afterEach(() => {
  for (const close of closers.splice(0)) close()
})
afterAll(async () => {
  await redis.stop()
  rmSync(folder, { recursive: true })
})

function settings(user: RedisUser): RedisSettings {
  const { REDIS_URL, REDIS_USERNAME, REDIS_PASSWORD } = redis.envFor(user)
  return { url: REDIS_URL, username: REDIS_USERNAME, password: REDIS_PASSWORD }
}

/** Each end as the program that has it: with its own ACL user. */
async function subject(): Promise<ProjectionSubject> {
  await redis.admin.flushall()
  const store = new RedisProjectionStore(new RedisConnection(settings('operator'), 'test-operator', { commandMs: 2_000 }), 'hg')
  const source = new RedisProjectionSource(settings('gateway'), 'hg')
  closers.push(
    () => void store.close(),
    () => void source.close(),
  )
  return { store, source }
}

describeProjection('Redis, each side as its own ACL user,', subject)

describe('RedisProjectionStore', () => {
  const put = (id: string): ProjectionChange => ({ kind: 'key', op: 'put', id, text: recordText(issuedKey(id).record) })

  it('lets the old data set expire after a switch, for readers that still load it, and keeps the new one', async () => {
    const { store } = await subject()
    await store.rebuild(1, 'e1', 1, [put('a')])
    await store.rebuild(1, 'e2', 2, [put('a')])
    expect(await redis.admin.ttl(keys.records('e1', 'key'))).toBeGreaterThan(200)
    expect(await redis.admin.ttl(keys.records('e2', 'key'))).toBe(-1)
  })

  it('a rebuild that breaks off leaves nothing behind for ever', async () => {
    const { store } = await subject()
    await store.rebuild(1, 'e1', 1, [put('a')])
    await redis.admin.hset(keys.meta, 'fence', '9')
    await redis.admin.hdel(keys.meta, 'schema') // unreadable: the fence is found by the script alone, after the records were written
    expect((await store.rebuild(5, 'e4', 4, [put('a')])).outcome).toBe('fenced')
    expect(await redis.admin.ttl(keys.records('e4', 'key'))).toBeGreaterThan(200)
  })

  it('a meta that cannot be read is replaced, not stumbled over for ever', async () => {
    const { store } = await subject()
    await store.rebuild(1, 'e1', 1, [put('a')])
    await redis.admin.hdel(keys.meta, 'rev')
    expect(await store.meta()).toBeUndefined()
    expect((await store.rebuild(1, 'e2', 2, [put('a')])).outcome).toBe('written')
    expect(await store.meta()).toMatchObject({ epoch: 'e2', rev: 2 })
  })

  it('goes on when Redis has forgotten its scripts', async () => {
    const { store } = await subject()
    await store.rebuild(1, 'e1', 1, [])
    await redis.admin.script('FLUSH')
    expect((await store.write(1, 'e1', [put('a')], 1)).outcome).toBe('written')
  })

  it('forgets a process that has been silent for an hour, and counts none that has been for more than five seconds', async () => {
    const { store, source } = await subject()
    const ack = { epoch: 'e', rev: 1, source: 'Redis', ready: true, version: 't', schemas: [1], bad: [], backends: {} } as const
    for (const process of ['new/1', 'late/1', 'gone/1']) await source.heartbeat(process, { ...ack, schemas: [1], bad: [] })
    const [seconds] = await redis.admin.time()
    await redis.admin.zadd(keys.pods, (Number(seconds) - 6) * 1000, 'late/1')
    await redis.admin.zadd(keys.pods, (Number(seconds) - 3601) * 1000, 'gone/1')
    expect((await store.liveProcesses()).map(({ process }) => process)).toEqual(['new/1'])
    expect(Object.keys(await redis.admin.hgetall(keys.acks)).sort()).toEqual(['late/1', 'new/1'])
  })

  it('a heartbeat that cannot be read counts as a process that has acknowledged nothing', async () => {
    const { store, source } = await subject()
    const ack = { epoch: 'e', rev: 1, source: 'Redis', ready: true, version: 't', schemas: [1], bad: [], backends: {} } as const
    await source.heartbeat('pod/1', { ...ack, schemas: [1], bad: [] })
    await redis.admin.hset(keys.acks, 'pod/1', '{"epoch":')
    expect(await store.liveProcesses()).toEqual([{ process: 'pod/1', pod: 'pod', acknowledgement: undefined }])
  })

  it('the user of the gateways can write nothing of it: no record, no meta, no log', async () => {
    const { store } = await subject()
    await store.rebuild(1, 'e1', 1, [put('a')])
    const gateway = redis.connect('gateway')
    closers.push(() => gateway.disconnect())
    await expect(gateway.hset(keys.records('e1', 'key'), 'b', '{}')).rejects.toThrow('NOPERM')
    await expect(gateway.hset(keys.meta, 'rev', '2')).rejects.toThrow('NOPERM')
    await expect(gateway.xadd(keys.log, '2-0', 'k', 'key')).rejects.toThrow('NOPERM')
    await expect(gateway.del(keys.records('e1', 'key'))).rejects.toThrow('NOPERM')
    await expect(gateway.eval(`return redis.call('HSET', KEYS[1], 'rev', '9')`, 1, keys.meta)).rejects.toThrow(/NOPERM|permission/i)
  })
})
