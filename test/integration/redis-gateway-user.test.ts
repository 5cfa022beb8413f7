import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { PodLedger } from '../../gateway/limits/pod-ledger.ts'
import { systemClock } from '#platform/clock.ts'
import { GATEWAY_COMMANDS } from '../support/redis-acl.ts'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { redisFunctions } from '#contract/redis/redis-functions.ts'
import { ledgerKeys, redisKeys, settledSubjects } from '#contract/redis/redis-keys.ts'
import { encodeAcknowledgement } from '#contract/records/revision-log.ts'
import type { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import { ServingPods } from '../../operator/projection/serving-pods.ts'
import { openLab } from '../support/lab.ts'
import { budget, need, subject, usage } from '../support/ledger-world.ts'
import { RedisGateway, redisSettings, redisStore } from '../support/redis-gateway.ts'
import type { RedisPart } from '../support/redis-part.ts'
import { acknowledgement, issuedKey, recordText, writer } from '../support/records.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const KEYS = redisKeys('hg')
const FUNCTIONS = redisFunctions('hg')
const LEDGER = ledgerFunctions('hg')
const { rate: RATE, conc: CONC } = ledgerKeys('hg', 'a')
const RECORDS = KEYS.records('e1', 'key')
const lab = openLab()

let redis: RedisPart
let store: RedisProjectionStore
/** The connection of an attacker who has taken over a gateway: any command, with the rights of the gateway. */
let attacker: Redis
const running: RedisGateway[] = []
const key = issuedKey('a')
const put = { kind: 'key', op: 'put', id: 'a', text: recordText(key.record) } as const

beforeAll(async () => {
  redis = await lab.redis()
  store = redisStore(redis)
  attacker = redis.connect('gateway')
  await redis.admin.call('FUNCTION', 'LOAD', 'REPLACE', LEDGER.code)
})
beforeEach(async () => {
  await redis.admin.flushall()
  await store.prepare()
  await store.rebuild(writer(), 'e1', 10, [])
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.follower.stop()))
})
afterAll(async () => {
  attacker.disconnect()
  await store.close()
})

function startGateway(process: string): Promise<RedisGateway> {
  const gateway = new RedisGateway(process, redisSettings(redis, 'gateway'))
  running.push(gateway)
  return gateway.ready()
}

async function commandsRun(): Promise<string[]> {
  const lines = (await redis.admin.info('commandstats')).split('\r\n')
  return lines.flatMap((line) => /^cmdstat_([^:]+):calls=[1-9]/.exec(line)?.[1] ?? [])
}

describe('the Redis user of the gateways', () => {
  test('has every right that a gateway uses, and no other', async () => {
    await redis.admin.config('RESETSTAT')
    const gateway = await startGateway('pod-1/x')
    await redis.admin.hset(RECORDS, 'a', recordText(key.record, { revision: 11 })) // as the admin, whose commands do not count as commands of a gateway
    await redis.admin.multi().hset(KEYS.meta, 'rev', 11).xadd(KEYS.log, '11-0', 'k', 'key', 'op', 'put', 'id', 'a').exec()
    await eventually(() => expect(gateway.state(key)).toBe('Active'))
    await countLimits()
    await gateway.follower.stop()
    const besides = ['config|resetstat', 'client|pause', 'exec', 'multi', 'xadd', 'auth'] // commands of the admin; and AUTH, for which Redis requires no right
    expect((await commandsRun()).filter((name) => !besides.includes(name)).toSorted()).toEqual([...GATEWAY_COMMANDS].toSorted())
    expect(await redis.admin.call('ACL', 'LOG')).toEqual([])
  })

  /** Makes the ledger of a pod run all of its commands: for every limit, a budget with spend, a damaged window and a slow Redis. */
  async function countLimits(): Promise<void> {
    const line = (): void => undefined
    const log = { debug: line, info: line, warn: line, error: line }
    const ledger = new PodLedger({
      redis: redisSettings(redis, 'gateway'),
      keyPrefix: 'hg',
      process: 'x',
      maxReplicas: 20,
      waitMs: 50,
      clock: systemClock,
      log,
    })
    const limits = { requestsPerMinute: 100, tokensPerMinute: 1_000, maxConcurrentRequests: 5 }
    const limited = subject({ uid: 'a', limits, budgets: [budget()] })
    await redis.admin.fcall(LEDGER.seed, 1, ledgerKeys('hg', 'a').budget, 'seed')
    const hold = await waitFor('a hold', async () => {
      const verdict = await ledger.reserve([limited], need({ tokens: 10, holdByUnit: { Currency: 100, Tokens: 0 } }))
      return verdict.outcome === 'held' ? verdict : undefined
    })
    ledger.settle(hold, usage({ inputTokens: 5, costMicros: 7 }))
    await eventually(() => expect(ledger.livePods).toBe(1))
    await waitFor('a name', namesSent)
    for (const name of [RATE, CONC]) await redis.admin.hset(name, 'forged', 'x'.repeat(100)) // a hash table, so that lengths are read
    await redis.admin.hset(RATE, 'rtot', 'damaged')
    await ledger.snapshot(limited)
    await redis.admin.client('PAUSE', 400, 'ALL')
    await ledger.snapshot({ ...limited }).catch(() => undefined) // too slow
    await eventually(() => expect(ledger.breaker).toBe('closed'))
    await ledger.close(1_000)
  }

  async function namesSent(): Promise<boolean> {
    return (await commandsRun()).includes('sadd')
  }

  test.each<[string, ...(string | number)[]]>([
    ...(['HSET', 'HDEL', 'HINCRBY', 'HSETNX'] as const).map((command): [string, ...(string | number)[]] => [command, RECORDS, 'a', '1']),
    ['HSET', KEYS.meta, 'rev', 99],
    ['HDEL', KEYS.meta, 'epoch'],
    ['HSET', 'hg:other', 'a', 'b'],
    ['HSET', KEYS.meta, 'installation', 'mine'],
    ['ZADD', KEYS.log, 1, 'x'],
    ['XADD', KEYS.log, '99-0', 'k', 'key'],
    ['XTRIM', KEYS.log, 'MAXLEN', 0],
    ['XSETID', KEYS.log, '99-0'],
    ['XGROUP', 'CREATE', KEYS.log, 'g', '$'],
    ['DEL', KEYS.pods],
    ['UNLINK', KEYS.meta],
    ['UNLINK', RECORDS],
    ['PEXPIRE', RECORDS, 1],
    ['SADD', KEYS.meta, 'x'],
    ...['acquire', 'seed', 'reap', 'forget', 'bury'].flatMap((name): [string, ...(string | number)[]][] => {
      const names = [RECORDS, KEYS.meta].map((at) => Array.from({ length: name === 'acquire' ? 5 : 1 }, () => at))
      return names.map((at) => ['FCALL', LEDGER[name as 'acquire'], at.length, ...at, 'a', '{}'])
    }),
    ['SET', KEYS.pods, 'x'],
    ['SETRANGE', KEYS.acks, 536_870_000, 'x'],
    ['APPEND', KEYS.acks, 'x'],
    ['EXPIRE', KEYS.pods, 1],
    ['PERSIST', KEYS.pods],
    ['RENAME', KEYS.pods, RECORDS],
    ['COPY', KEYS.pods, RECORDS],
    ['RESTORE', KEYS.pods, 0, 'x'],
    ['ZUNIONSTORE', KEYS.pods, 1, KEYS.pods],
    ['ZRANGESTORE', KEYS.pods, KEYS.pods, 0, -1],
    ['SORT', KEYS.pods, 'STORE', KEYS.acks],
    ['EVAL', `while true do end`, 0],
    ['EVAL', `return redis.call('HSET', KEYS[1], 'mine', '{}')`, 1, RECORDS],
    ['EVAL_RO', `return 1`, 0],
    ['EVALSHA', '0'.repeat(40), 0],
    ['SCRIPT', 'LOAD', 'return 1'],
    ['SCRIPT', 'FLUSH'],
    ['SCRIPT', 'KILL'],
    ['FUNCTION', 'LOAD', 'REPLACE', FUNCTIONS.code],
    ['FUNCTION', 'FLUSH'],
    ['FUNCTION', 'DELETE', FUNCTIONS.library],
    ['FUNCTION', 'LIST'],
    ['FUNCTION', 'KILL'],
    ['FCALL', FUNCTIONS.write, 4, KEYS.meta, KEYS.log, RECORDS, KEYS.records('e1', 'model'), 1, 'e1', '', 0, 9, 'key', 'put', 'a', '{}'],
    ['FCALL', FUNCTIONS.switch, 4, KEYS.meta, KEYS.log, RECORDS, KEYS.records('e1', 'model'), 1, 'e2', '', 1, 99, 'e1', 1],
    ['FCALL', FUNCTIONS.live, 3, KEYS.meta, KEYS.pods, KEYS.acks, 5_000],
    ['FCALL', FUNCTIONS.heartbeat, 2, RECORDS, KEYS.meta, 'a', '{}'],
    ['FCALL', FUNCTIONS.leave, 2, RECORDS, KEYS.meta, 'a'],
    ['FCALL_RO', FUNCTIONS.live, 0],
    ['HVALS', RECORDS],
    ['GETRANGE', KEYS.meta, 0, 1],
    ['GET', 'elsewhere'],
    ['HMGET', 'elsewhere', 'a'],
    ['HSCAN', 'hg:other', 0],
    ['SMEMBERS', settledSubjects('hg')],
    ['KEYS', '*'],
    ['SCAN', 0],
    ['RANDOMKEY'],
    ['DBSIZE'],
    ['SELECT', 1],
    ['SWAPDB', 0, 1],
    ['MOVE', KEYS.pods, 1],
    ['FLUSHALL'],
    ['FLUSHDB'],
    ['CONFIG', 'GET', '*'],
    ['CONFIG', 'SET', 'maxmemory', 1],
    ['ACL', 'LIST'],
    ['ACL', 'WHOAMI'],
    ['CLIENT', 'LIST'],
    ['CLIENT', 'KILL', 'TYPE', 'normal'],
    ['CLIENT', 'PAUSE', 10_000],
    ['CLIENT', 'NO-EVICT', 'on'],
    ['MONITOR'],
    ['SUBSCRIBE', 'x'],
    ['PUBLISH', 'x', 'y'],
    ['MULTI'],
    ['WATCH', KEYS.meta],
    ['WAIT', 1, 0],
    ['BLPOP', KEYS.pods, 0],
    ['DEBUG', 'SLEEP', 1],
    ['LATENCY', 'RESET'],
    ['SLOWLOG', 'GET'],
    ['MODULE', 'LIST'],
    ['COMMAND', 'DOCS'],
    ['SAVE'],
    ['BGREWRITEAOF'],
    ['SHUTDOWN', 'NOSAVE'],
    ['REPLICAOF', 'NO', 'ONE'],
    ['FAILOVER'],
    ['MIGRATE', '10.250.7.1', 1, KEYS.acks, 0, 100],
    ['PSYNC', '?', -1],
    ['CLUSTER', 'INFO'],
  ])('may not %s %s %s', async (command, ...args) => {
    const before = await redis.dump()
    await expect(attacker.call(command, ...args)).rejects.toThrow(
      /NOPERM|can't access|No permissions|ACL failure|Can not execute a script/i,
    )
    expect(await redis.dump()).toBe(before)
  })
})

describe('damage done with the rights of a gateway is repaired while the operator polls:', () => {
  const claim = encodeAcknowledgement(acknowledgement())
  const BIG = 1_000_000

  const attacks: ReadonlyArray<readonly [string, () => Promise<unknown>]> = [
    ['both keys deleted', () => attacker.unlink(KEYS.pods, KEYS.acks)],
    ['both keys expired', () => attacker.pexpire(KEYS.pods, 1).then(() => attacker.pexpire(KEYS.acks, 1))],
    ['a process that lives until 2100', () => attacker.zadd(KEYS.pods, 4_102_444_800_000, 'ghost/1', '+inf', 'ghost/2', '-inf', 'ghost/3')],
    ['ten thousand processes', () => attacker.zadd(KEYS.pods, ...many(10_000, (i) => [4_102_444_800_000 + i, `ghost-${i}/1`]))],
    ['forty thousand silent processes', () => attacker.zadd(KEYS.pods, ...many(40_000, (i) => [Date.now() - 10_000, `ghost-${i}/1`]))],
    ['a name of a megabyte', () => attacker.zadd(KEYS.pods, Date.now(), 'g'.repeat(BIG))],
    ['names of 64 MB', () => attacker.zadd(KEYS.pods, ...many(64, (i) => [Date.now() - 6_000, `${i}${'g'.repeat(BIG)}`]))],
    [
      'an acknowledgement of 150 MB',
      () => attacker.call('FCALL', FUNCTIONS.heartbeat, 2, KEYS.pods, KEYS.acks, 'pod-1/x', 'x'.repeat(150 * BIG)),
    ],
    ['thousands of acknowledgements of absent processes', () => attacker.hset(KEYS.acks, ...many(10_000, (i) => [`ghost-${i}/1`, claim]))],
    ['more acknowledgements than one poll reads', () => attacker.hset(KEYS.acks, ...many(40_000, (i) => [`ghost-${i}/1`, '{}']))],
    [
      'acknowledgements of absent processes of 100 MB',
      () => attacker.hset(KEYS.acks, ...many(100, (i) => [`ghost-${i}/1`, 'x'.repeat(BIG)])),
    ],
    ['fields with names of 50 MB', () => attacker.hset(KEYS.acks, ...many(50, (i) => [`${i}${'g'.repeat(BIG)}`, '']))],
  ]

  test.each(attacks)('%s', async (_, attack) => {
    const gateway = await startGateway('pod-1/x')
    await eventually(async () => expect(await proven('a', 10)).toEqual(['pod-1/x']))
    await attack()
    const outcome = await store.write(writer(), 'e1', [put], 10)
    expect(outcome).toEqual({ outcome: 'written', revisions: [11] })
    await eventually(async () => expect(await proven('a', 11)).toEqual(['pod-1/x']), { everyMs: 100 })
    expect(gateway.state(key)).toBe('Active')
    expect(gateway.loads).toBe(1)
    await eventually(async () => {
      await store.liveProcesses()
      expect([await redis.admin.zcard(KEYS.pods), await redis.admin.hkeys(KEYS.acks)]).toEqual([1, ['pod-1/x']])
    })
  })

  test('memory full of acknowledgements', async () => {
    const gateway = await startGateway('pod-1/x')
    const used = Number(/used_memory:(\d+)/.exec(await redis.admin.info('memory'))?.[1])
    await redis.admin.config('SET', 'maxmemory', used + 20 * BIG)
    try {
      for (const bytes of [BIG, 20_000, 200]) await fillMemory(bytes) // the last gap is small
      await eventually(async () => {
        await store.liveProcesses()
        expect(await store.write(writer(), 'e1', [put], 10)).toEqual({ outcome: 'written', revisions: [11] })
        expect(await proven('a', 11)).toEqual(['pod-1/x'])
      })
      expect(gateway.state(key)).toBe('Active')
    } finally {
      await redis.admin.config('SET', 'maxmemory', 0)
    }
  })

  test('a full Redis refuses no write of the operator, and its function writes nothing for the gateways', async () => {
    const used = Number(/used_memory:(\d+)/.exec(await redis.admin.info('memory'))?.[1])
    const forged = 'hg:l:{forged}:meta'
    await attacker.hset(forged, 'epoch', 'e1', 'rev', '1')
    await redis.admin.config('SET', 'maxmemory', used + 4 * BIG)
    try {
      for (const bytes of [BIG, 20_000, 200]) await fillMemory(bytes, 'hg:l:{junk}:junk')
      expect(await store.write(writer(), 'e1', [put], 10)).toEqual({ outcome: 'written', revisions: [11] })
      const args = ['9', 'e1', 'x'.repeat(BIG), '0', '10']
      await expect(attacker.call('FCALL', FUNCTIONS.write, 2, forged, 'hg:l:{forged}:log', ...args)).rejects.toThrow(
        /hincrby|can't run this command|NOPERM/i,
      )
      expect(await redis.admin.hgetall(forged)).toEqual({ epoch: 'e1', rev: '1' })
    } finally {
      await redis.admin.config('SET', 'maxmemory', 0)
      await redis.admin.del('hg:l:{junk}:junk', forged)
    }
  })

  async function fillMemory(bytes: number, key: string = KEYS.acks): Promise<void> {
    for (let i = 0; ; i++) {
      try {
        await attacker.hset(key, `ghost-${bytes}-${i}/1`, 'x'.repeat(bytes))
      } catch (error) {
        expect(String(error)).toContain('OOM')
        return
      }
    }
  }

  async function proven(uid: string, revision: number): Promise<string[]> {
    const live = await store.liveProcesses()
    return live.map((one) => {
      const pods = new ServingPods([one], [], 'e1')
      return pods.hasApplied(revision, uid) ? one.process : `${one.process.slice(0, 20)}: no`
    })
  }
})

function many(count: number, pair: (index: number) => readonly [number | string, string]): Array<number | string> {
  return Array.from({ length: count }, (_, index) => pair(index)).flat()
}
