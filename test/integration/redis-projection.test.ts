import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Misconfigured } from '#platform/lifecycle.ts'
import { RedisConnection, type RedisSettings } from '#platform/redis-connection.ts'
import { redisKeys } from '#contract/redis/redis-keys.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import type { ProjectionChange } from '../../operator/projection/store.ts'
import { freePort } from '../support/free-port.ts'
import { openLab } from '../support/lab.ts'
import { RedisGateway, redisSettings } from '../support/redis-gateway.ts'
import type { RedisPart, RedisUser } from '../support/redis-part.ts'
import { issuedKey, modelText, recordText, writer, type IssuedKey } from '../support/records.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const KEYS = redisKeys('hg')
const IS_A_CLUSTER = /is a cluster \(MOVED \d+ [\d.]+:\d+\); point REDIS_URL to a single Redis or its primary$/
const lab = openLab()

let redis: RedisPart
let operator: RedisConnection
let store: RedisProjectionStore
const running: RedisGateway[] = []

beforeAll(async () => {
  redis = await lab.redis()
  operator = new RedisConnection(settingsOf('operator'), 'operator', { commandMs: 10_000 })
  store = new RedisProjectionStore(operator, 'hg')
})
beforeEach(() => redis.admin.flushall())
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.follower.stop()))
})
afterAll(() => operator.close())

function settingsOf(user: RedisUser, at = redis): RedisSettings {
  return redisSettings(at, user)
}

function startGateway(process: string, settings = settingsOf('gateway')): RedisGateway {
  const gateway = new RedisGateway(process, settings)
  running.push(gateway)
  return gateway
}

const put = ({ record }: IssuedKey, change = {}): ProjectionChange => ({
  kind: 'key',
  op: 'put',
  id: record.uid,
  text: recordText(record, change),
})
const del = ({ record }: IssuedKey): ProjectionChange => ({ kind: 'key', op: 'del', id: record.uid })
const build = (epoch: string, revision: number, ...keys: IssuedKey[]) =>
  store.rebuild(
    writer(),
    epoch,
    revision,
    keys.map((key) => put(key)),
  )
const write = (epoch: string, ...changes: ProjectionChange[]) => store.write(writer(), epoch, changes, 0)

async function acknowledged(): Promise<Record<string, string>> {
  const live = await store.liveProcesses()
  return Object.fromEntries(live.map(({ process, acknowledgement: ack }) => [process, ack ? `${ack.epoch} ${ack.revision}` : 'none']))
}

describe('what the operator writes', () => {
  test('is applied and acknowledged by every gateway, in order, from apply to deletion', async () => {
    const a = issuedKey('a')
    await build('e1', 10)
    const [one, two] = await Promise.all([startGateway('pod-1/x').ready(), startGateway('pod-2/y').ready()])
    for (const [change, state] of [
      [put(a), 'Active'],
      [put(a, { state: 'Suspended' }), 'Suspended'],
      [put(a, { state: 'Revoked' }), 'Revoked'],
      [del(a), 'unknown'],
    ] as const) {
      await write('e1', change)
      await eventually(() => expect([one.state(a), two.state(a)]).toEqual([state, state]), { everyMs: 5 })
    }
    await eventually(async () => expect(await acknowledged()).toEqual({ 'pod-1/x': 'e1 14', 'pod-2/y': 'e1 14' }))
    expect([one.loads, two.loads]).toEqual([1, 1])
  })

  test('is loaded completely by a gateway that starts later: thousands of keys, and models', async () => {
    const keys = Array.from({ length: 5_000 }, (_, i) => issuedKey(`k${i}`))
    await store.rebuild(writer(), 'e1', 10, [...keys.map((key) => put(key)), { kind: 'model', op: 'put', id: 'm', text: modelText('m') }])
    const gateway = await startGateway('pod-1/x').ready()
    expect(gateway.keys.size).toBe(5_000)
    expect(keys.every((key) => gateway.state(key) === 'Active')).toBe(true)
  })

  test('reaches a gateway that reads the log while thousands of entries arrive', async () => {
    await build('e1', 10)
    const gateway = await startGateway('pod-1/x').ready()
    const keys = Array.from({ length: 2_000 }, (_, i) => issuedKey(`k${i}`))
    for (let at = 0; at < keys.length; at += 200) await write('e1', ...keys.slice(at, at + 200).map((key) => put(key)))
    await eventually(() => expect(gateway.follower.position).toEqual({ epoch: 'e1', revision: 2_010 }))
    expect(gateway.keys.size).toBe(2_000)
    expect(gateway.loads).toBe(1)
  })
})

describe('a gateway whose Redis', () => {
  test('is emptied keeps every key, and loads the projection as soon as it is rebuilt', async () => {
    const [a, deleted] = [issuedKey('a'), issuedKey('deleted')]
    await build('e1', 10, a, deleted)
    const gateway = await startGateway('pod-1/x').ready()
    await redis.admin.flushall()
    await gateway.said(/the store was emptied/)
    expect([gateway.state(a), gateway.state(deleted)]).toEqual(['Active', 'Active'])
    await build('e2', 11, a)
    await eventually(() => expect(gateway.follower.position).toEqual({ epoch: 'e2', revision: 11 }))
    expect([gateway.state(a), gateway.state(deleted)]).toEqual(['Active', 'unknown'])
    await eventually(async () => expect(await acknowledged()).toEqual({ 'pod-1/x': 'e2 11' }))
  })

  test('is stopped and comes back empty serves during the outage and recovers without a restart', async () => {
    const a = issuedKey('a')
    await build('e1', 10, a)
    const gateway = await startGateway('pod-1/x').ready()
    await redis.stop()
    expect(await gateway.said(/does not answer/)).toMatch(
      /^Redis at [\d.]+:\d+ does not answer .*; check that it runs and that this process may reach it$/,
    )
    expect(gateway.state(a)).toBe('Active')
    await redis.start()
    await waitFor('the operator to be connected', () => operator.client.status === 'ready')
    await build('e2', 11)
    await eventually(() => expect(gateway.state(a)).toBe('unknown'))
    expect(gateway.lines.join()).toContain('works again')
  })

  test('does not answer for seconds knows that it is behind, and continues with the log afterwards', async () => {
    const [a, b] = [issuedKey('a'), issuedKey('b')]
    await build('e1', 10, a)
    const gateway = await startGateway('pod-1/x').ready()
    await redis.process.kill('SIGSTOP')
    try {
      await eventually(() => expect(gateway.follower.unreadForMs).toBeGreaterThan(5_000))
      expect(gateway.state(a)).toBe('Active')
    } finally {
      await redis.process.kill('SIGCONT')
    }
    await write('e1', put(b))
    await eventually(() => expect(gateway.state(b)).toBe('Active'))
    await eventually(() => expect(gateway.follower.unreadForMs).toBeLessThan(5_000))
    expect(gateway.loads).toBe(1)
  })

  test('loses its log loads everything again', async () => {
    const a = issuedKey('a')
    await build('e1', 10)
    const gateway = await startGateway('pod-1/x').ready()
    await redis.admin
      .multi()
      .hset(KEYS.meta, 'rev', 11)
      .hset(KEYS.records('e1', 'key'), 'a', recordText(a.record, { revision: 11 }))
      .exec()
    await eventually(() => expect(gateway.state(a)).toBe('Active'))
    expect(gateway.lines.join()).toContain('the log lacks the entries up to 11')
  })

  test('refuses its password names the settings to correct, never the password, and waits for them', async () => {
    await build('e1', 10)
    const gateway = startGateway('pod-1/x', { ...settingsOf('gateway'), username: 'new-user', password: 'the-secret-one' })
    expect(await gateway.said(/refuses the credentials of user "new-user"; correct REDIS_USERNAME and REDIS_PASSWORD/)).not.toContain(
      'the-secret-one',
    )
    expect(gateway.follower.loaded).toBe(false)
    await redis.admin.acl('SETUSER', 'new-user', 'on', '>the-secret-one', '%R~hg:{proj}:*', '+@all')
    await gateway.ready()
    await redis.admin.acl('DELUSER', 'new-user')
  })

  test('gives its user too few rights names the command and the remedy', async () => {
    await redis.admin.acl('SETUSER', 'poor', 'on', '>pass', '+@connection', '+info')
    const gateway = startGateway('pod-1/x', { ...settingsOf('gateway'), username: 'poor', password: 'pass' })
    await gateway.said(/does not let user "poor" do this \(NOPERM .*hmget.*\); give that user the ACL rules/)
    await redis.admin.acl('DELUSER', 'poor')
  })

  test('has no projection yet says that the operator is missing', async () => {
    const gateway = startGateway('pod-1/x')
    await gateway.said(/the projection is empty: .* check that the operator runs and uses the same Redis/)
    await build('e1', 1)
    await gateway.ready()
  })

  test('may evict keys ends before it serves any request', async () => {
    const evicting = await lab.redis({ policy: 'allkeys-lru' })
    const gateway = startGateway('pod-1/x', settingsOf('gateway', evicting))
    const failure = await gateway.follower.failed.catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(Misconfigured)
    expect(String(failure)).toMatch(/evicts data .* \(maxmemory-policy allkeys-lru\); set "maxmemory-policy noeviction" there/)
  })

  test('is a cluster names the cause and loads nothing, and the operator writes nothing there', async () => {
    const busPort = await freePort()
    const [owner, other] = await Promise.all([startNode(busPort), startNode(await freePort())])
    await owner.admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await other.admin.call('CLUSTER', 'MEET', owner.ip, String(owner.port), String(busPort))
    await waitFor('the nodes to meet', async () => String(await other.admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok'))
    const connection = new RedisConnection(settingsOf('operator', other), 'operator', { commandMs: 10_000 })
    await expect(new RedisProjectionStore(connection, 'hg').rebuild(writer(), 'e1', 1, [put(issuedKey('a'))])).rejects.toThrow(IS_A_CLUSTER)
    const gateway = startGateway('pod-1/x', settingsOf('gateway', other))
    await gateway.said(IS_A_CLUSTER)
    expect(gateway.follower.loaded).toBe(false)
    expect([await owner.admin.keys('*'), await other.admin.keys('*')]).toEqual([[], []])
    connection.close()
  })
})

function startNode(busPort: number): Promise<RedisPart> {
  return lab.redis({ args: ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)] })
}

describe('a gateway that shuts down', () => {
  test('is no longer a live process', async () => {
    await build('e1', 10)
    const gateway = await startGateway('pod-1/x').ready()
    await eventually(async () => expect(Object.keys(await acknowledged())).toEqual(['pod-1/x']))
    await gateway.follower.stop()
    expect(await acknowledged()).toEqual({})
    expect(await redis.admin.hlen(KEYS.acks)).toBe(0)
  })
})
