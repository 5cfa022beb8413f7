import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { RedisProjectionSource } from '../../gateway/projection/redis-projection.ts'
import { redisFunctions } from '#contract/redis/redis-functions.ts'
import { redisKeys } from '#contract/redis/redis-keys.ts'
import type { ProjectionChange } from '../../operator/projection/store.ts'
import { describeProjection, type ProjectionSubject } from '../contract/projection.suite.ts'
import { openLab } from '../support/lab.ts'
import { acknowledgement, issuedKey, recordText, writer } from '../support/records.ts'
import { redisSettings, redisStore } from '../support/redis-gateway.ts'
import type { RedisPart } from '../support/redis-part.ts'

const lab = openLab()
const keys = redisKeys('hg')
const golden = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, `../golden/formats/v1/${name}.json`), 'utf8'))
const closers: Array<() => void> = []
let redis: RedisPart

beforeAll(async () => {
  redis = await lab.redis()
})
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

async function subject(): Promise<ProjectionSubject> {
  await redis.admin.flushall()
  const store = redisStore(redis)
  const source = new RedisProjectionSource(redisSettings(redis, 'gateway'), 'hg')
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
    await store.rebuild(writer(), 'e1', 1, [put('a')])
    await store.rebuild(writer(), 'e2', 2, [put('a')])
    expect(await redis.admin.ttl(keys.records('e1', 'key'))).toBeGreaterThan(200)
    expect(await redis.admin.ttl(keys.records('e2', 'key'))).toBe(-1)
  })

  it('the records of an aborted rebuild expire', async () => {
    const { store } = await subject()
    await store.rebuild(writer(), 'e1', 1, [put('a')])
    await redis.admin.hset(keys.meta, 'fence', '9')
    await redis.admin.hdel(keys.meta, 'schema') // an unreadable meta: only the script finds the fence, after the records were written
    expect((await store.rebuild(writer(5), 'e4', 4, [put('a')])).outcome).toBe('fenced')
    expect(await redis.admin.ttl(keys.records('e4', 'key'))).toBeGreaterThan(200)
  })

  it('an unreadable meta is replaced by a rebuild', async () => {
    const { store } = await subject()
    await store.rebuild(writer(), 'e1', 1, [put('a')])
    await redis.admin.hdel(keys.meta, 'rev')
    expect(await store.meta()).toBeUndefined()
    expect((await store.rebuild(writer(), 'e2', 2, [put('a')])).outcome).toBe('written')
    expect(await store.meta()).toMatchObject({ epoch: 'e2', revision: 2 })
  })

  it('the written texts equal the golden files of the version', async () => {
    const { store } = await subject()
    await store.rebuild(writer(3, '0192f3a1-installation'), 'epoch-1', 4710, [])
    await store.write(writer(3, '0192f3a1-installation'), 'epoch-1', [put('uid-1')], 4710)
    const [entry] = await redis.admin.xrange(keys.log, '-', '+')
    expect(entry).toEqual(golden('log-entry'))
    const { builtAt, ...rest } = await redis.admin.hgetall(keys.meta)
    expect(builtAt).toMatch(/^\d+$/)
    expect({ ...rest, builtAt: '1790000000' }).toEqual(golden('meta'))
  })

  describe('has its function library', () => {
    const { library, code, live } = redisFunctions('hg')
    const codeOf = async (): Promise<unknown> =>
      ((await redis.admin.call('FUNCTION', 'LIST', 'WITHCODE')) as unknown[][]).map((one) => one.at(-1))
    const load = (text: string) => redis.admin.call('FUNCTION', 'LOAD', 'REPLACE', text)
    const marked = (revision: number): string => code.replace(/^-- headgate revision \d+$/m, `-- headgate revision ${revision}`)

    it('loaded at a take-over, once', async () => {
      await redis.admin.call('FUNCTION', 'FLUSH')
      const { store } = await subject()
      await Promise.all([store.prepare(), store.prepare()])
      await redis.admin.config('RESETSTAT')
      await store.prepare()
      expect(await codeOf()).toEqual([code])
      expect(await redis.admin.info('commandstats')).not.toContain('function|load')
    })

    it('again when Redis has lost the library, whichever call comes first', async () => {
      const { store, source } = await subject()
      await store.rebuild(writer(), 'e1', 1, [])
      for (const call of [
        async () => expect((await store.write(writer(), 'e1', [put('a')], 1)).outcome).toBe('written'),
        async () => expect((await store.rebuild(writer(), 'e1', 5, [])).outcome).toBe('written'),
        async () => expect(await store.liveProcesses()).toEqual([]),
      ]) {
        await redis.admin.call('FUNCTION', 'FLUSH')
        await call()
        expect(await codeOf()).toEqual([code])
      }
      await redis.admin.call('FUNCTION', 'FLUSH')
      await expect(source.heartbeat('pod/1', acknowledgement())).rejects.toThrow(
        /lacks the functions of Headgate; check that the operator runs/,
      )
      await store.liveProcesses()
      await source.heartbeat('pod/1', acknowledgement())
    })

    it('replaced when the library is older or was changed, and kept when a newer operator has loaded it', async () => {
      const { store } = await subject()
      for (const stale of [
        marked(0),
        code.replace('return 1', 'return 2'),
        `#!lua name=${library}\nredis.register_function('${live}', function() return {} end)`,
      ]) {
        await load(stale)
        await store.prepare()
        expect(await codeOf()).toEqual([code])
      }
      await load(marked(99))
      await store.prepare()
      expect(await codeOf()).toEqual([marked(99)])
      await load(code)
    })

    it('beside the library of another prefix', async () => {
      const { store } = await subject()
      const other = redisFunctions('other')
      await load(other.code)
      await store.prepare()
      await store.liveProcesses()
      await redis.admin.call('FUNCTION', 'DELETE', other.library)
    })
  })

  it('leaves nothing of a rebuild that fails because Redis is full, and readers keep the former data set', async () => {
    const { store } = await subject()
    await store.rebuild(writer(), 'e1', 1, [put('kept')])
    const records = Array.from({ length: 2_000 }, (_, at) => put(`k${at}`))
    const before = (await redis.admin.keys('*')).toSorted()
    const used = Number(/^used_memory:(\d+)/m.exec(await redis.admin.info('memory'))?.[1])
    await redis.admin.config('SET', 'maxmemory', String(used + 200 * 1024))
    try {
      await expect(store.rebuild(writer(), 'e2', 2, records)).rejects.toThrow('OOM')
    } finally {
      await redis.admin.config('SET', 'maxmemory', '0')
    }
    expect((await redis.admin.keys('*')).toSorted()).toEqual(before)
    expect(await store.meta()).toMatchObject({ epoch: 'e1', revision: 1 })
    expect((await store.rebuild(writer(1), 'e3', 3, records)).outcome).toBe('written')
  })

  it('refuses a call with so many changes that it would block Redis for long', async () => {
    const { store } = await subject()
    await store.rebuild(writer(), 'e1', 1, [])
    await expect(
      store.write(
        writer(),
        'e1',
        Array.from({ length: 201 }, (_, index) => put(`k${index}`)),
        1,
      ),
    ).rejects.toThrow('too many changes')
    expect(await store.meta()).toMatchObject({ revision: 1 })
  })

  it('the log of 21,000 edits stays small, for records of any length', async () => {
    const { store } = await subject()
    await store.rebuild(writer(), 'e1', 1, [])
    const { record } = issuedKey('a')
    const long = (edit: number): ProjectionChange => ({
      kind: 'key',
      op: 'put',
      id: 'a',
      text: recordText(record, { models: [['m'.repeat(1_000), `${edit}`]] }),
    })
    for (let edit = 0; edit < 21_000; edit += 200)
      await store.write(
        writer(),
        'e1',
        Array.from({ length: 200 }, (_, index) => long(edit + index)),
        1,
      )
    expect(await redis.admin.xlen(keys.log)).toBeLessThan(20_200)
    expect(Number(await redis.admin.call('MEMORY', 'USAGE', keys.log))).toBeLessThan(4_000_000)
  })

  it('deletes a process that has been silent for an hour, and counts no process that has been silent for more than five seconds', async () => {
    const { store, source } = await subject()
    for (const process of ['new/1', 'late/1', 'deleted/1']) await source.heartbeat(process, acknowledgement())
    const [seconds] = await redis.admin.time()
    await redis.admin.zadd(keys.pods, (Number(seconds) - 6) * 1000, 'late/1')
    await redis.admin.zadd(keys.pods, (Number(seconds) - 3601) * 1000, 'deleted/1')
    expect((await store.liveProcesses()).map(({ process }) => process)).toEqual(['new/1'])
    expect(Object.keys(await redis.admin.hgetall(keys.acks)).sort()).toEqual(['late/1', 'new/1'])
  })

  it('a heartbeat that cannot be read counts as a process that has acknowledged nothing', async () => {
    const { store, source } = await subject()
    await source.heartbeat('pod/1', acknowledgement())
    await redis.admin.hset(keys.acks, 'pod/1', '{"epoch":')
    expect(await store.liveProcesses()).toEqual([{ process: 'pod/1', pod: 'pod', acknowledgement: undefined }])
  })
})
