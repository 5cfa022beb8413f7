/**
 * The projection on a Redis Cluster of three primaries. All of its keys share one hash tag and so one slot. Operator and gateways use the
 * client that they use for a single Redis, so REDIS_URL has to name the primary of that slot. Both do not follow the slot when it moves:
 * until REDIS_URL names the new primary they report the cause, keep their data, and write nothing.
 *
 * This works for keys and models only. The ledgers of keys with limits are in other slots, which need a client that knows the Cluster
 * (`ledger-cluster.test.ts`).
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { authenticate } from '../../gateway/auth/authenticate.ts'
import { KeyTable } from '../../gateway/auth/key-table.ts'
import { GatewayError } from '../../gateway/errors.ts'
import { systemClock } from '#platform/clock.ts'
import { RedisConnection, StoreUnavailable } from '#platform/redis-connection.ts'
import { RedisProjectionSource } from '../../gateway/projection/redis-projection.ts'
import { RevisionFollower } from '../../gateway/projection/revision-follower.ts'
import { FORMAT } from '#contract/records/format.ts'
import { redisKeys } from '#contract/redis/redis-keys.ts'
import { ModelTable } from '../../gateway/upstream/model-table.ts'
import { Projection } from '../../operator/projection/projection.ts'
import { RedisProjectionStore } from '../../operator/projection/redis-projection-store.ts'
import type { ProjectionChange } from '../../operator/projection/store.ts'
import { describeProjection } from '../contract/projection.suite.ts'
import { issuedKey, modelText, recordText, writer, type IssuedKey } from '../support/records.ts'
import { RedisCluster } from '../support/redis-cluster.ts'
import { redisSettings } from '../support/redis-gateway.ts'
import type { RedisPart } from '../support/redis-part.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const IP = '127.0.0.1'
const KEYS = redisKeys('hg')
const IS_A_CLUSTER = /^Redis at [\d.]+:\d+ is a cluster \(MOVED \d+ [\d.]+:\d+\); point REDIS_URL to a single Redis or its primary$/
/** A gateway whose last certain read is older than this calls no key unknown, ms. */
const UNREAD_LIMIT_MS = 5_000

const folder = temporaryFolderOfFile()
const closers: Array<() => unknown> = []
let cluster: RedisCluster
let slot: number
let owner: RedisPart
let gateways = 0

beforeAll(async () => {
  cluster = await RedisCluster.start(folder, IP)
  slot = await cluster.slotOf(KEYS.meta)
}, 20_000)
beforeEach(async () => {
  owner = await cluster.ownerOf(slot) // an earlier test may have moved the slot
  await cluster.flush()
})
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})
afterAll(async () => {
  await cluster.stop()
})

const put = ({ record }: IssuedKey, change = {}): ProjectionChange => ({
  kind: 'key',
  op: 'put',
  id: record.uid,
  text: recordText(record, change),
})
const putModel = (id: string): ProjectionChange => ({ kind: 'model', op: 'put', id, text: modelText(id) })
const elsewhere = (): RedisPart => cluster.nodes.find((node) => node !== owner)!
const keysOf = ({ admin }: RedisPart): Promise<string[]> => admin.keys('*')

/** The operator's store, with the operator's user on one node. */
function storeAt(node: RedisPart): RedisProjectionStore {
  const connection = new RedisConnection(redisSettings(node, 'operator'), 'test-operator', { commandMs: 2_000 })
  closers.push(() => connection.close())
  return new RedisProjectionStore(connection, 'hg')
}

function sourceAt(node: RedisPart): RedisProjectionSource {
  const source = new RedisProjectionSource(redisSettings(node, 'gateway'), 'hg')
  closers.push(() => source.close())
  return source
}

/** The operator's side of a leader: pending writes are written, kept while Redis refuses them, and checked. */
class Leader {
  readonly projection: Projection
  readonly lines: string[] = []

  constructor(node: RedisPart, fence: number) {
    this.projection = new Projection({
      store: storeAt(node),
      clock: systemClock,
      fence: () => fence,
      raiseFence: () => Promise.reject(new Error('not expected')),
      assertLeading: () => undefined,
      onFenced: (by) => this.lines.push(`fenced by ${by}`),
      installation: () => '',
      takesOver: false,
      keeps: () => false,
      onWritten: () => undefined,
      onAvailability: () => undefined,
      onForeign: () => undefined,
      log: { info: (line) => this.lines.push(line) },
      outage: { failed: (line) => this.lines.push(line), works: () => undefined },
    })
    closers.push(() => this.projection.stop())
  }

  want(key: IssuedKey): void {
    this.projection.want('key', key.record.uid, recordText(key.record), 'change')
  }
}

/** @param fence of the election: a later leader has a higher one */
async function leaderAt(node: RedisPart, records: readonly ProjectionChange[], fence = 1): Promise<Leader> {
  const leader = new Leader(node, fence)
  await leader.projection.start(records, 0)
  return leader
}

/** The part of a gateway that follows the projection and authenticates requests. */
class Follower {
  readonly keys = new KeyTable()
  readonly models = new ModelTable({ allowLoopback: false })
  readonly lines: string[] = []
  readonly follower: RevisionFollower
  loads = 0

  constructor(node: RedisPart) {
    const line = (...args: unknown[]): void => void this.lines.push(args.map(String).join(' '))
    this.follower = new RevisionFollower({
      source: sourceAt(node),
      tables: { key: this.keys, model: this.models },
      process: `pod-${(gateways += 1)}/x`,
      version: '0',
      features: FORMAT.features,
      clock: systemClock,
      log: { debug: line, info: line, warn: line, error: line },
      backends: () => ({}),
      random: () => 0,
      onLoaded: () => (this.loads += 1),
    })
    this.follower.start()
    closers.push(() => this.follower.stop())
  }

  async ready(): Promise<this> {
    await waitFor('the gateway to load', () => this.follower.loaded)
    return this
  }

  /** Status for a client that sends this key; 200: the gateway admits the request. */
  ask({ credential }: IssuedKey): number {
    const authorization = `Bearer ${credential}`
    const request = { headers: { authorization }, rawHeaders: ['authorization', authorization] }
    const decided = authenticate(request, { keys: this.keys, projection: this.follower, now: () => Date.now(), apiKeyHeader: false })
    return decided instanceof GatewayError ? decided.row.status.openai : 200
  }

  serves(model: string): boolean {
    return this.models.resolve('shop', model) !== undefined
  }

  said(pattern: RegExp): Promise<string> {
    return waitFor(`a line like ${pattern.source}`, () => this.lines.find((line) => pattern.test(line)))
  }
}

describeProjection('the primary of its slot in a Cluster, each side as its own ACL user,', async () => ({
  store: storeAt(owner),
  source: sourceAt(owner),
}))

describe('on a Cluster', () => {
  test('keys and models reach a gateway from apply to deletion; all Redis keys share a slot, and no command needs another slot', async () => {
    for (const { admin } of cluster.nodes) await admin.config('RESETSTAT')
    const [store, a, b] = [storeAt(owner), issuedKey('a'), issuedKey('b')]
    await store.rebuild(writer(), 'e1', 10, [put(a), putModel('m')])
    const gateway = await new Follower(owner).ready()
    const seen = () => [gateway.ask(a), gateway.ask(b), gateway.serves('m'), gateway.serves('n')]
    expect(seen()).toEqual([200, 401, true, false])
    for (const [changes, expected] of [
      [
        [put(b), putModel('n')],
        [200, 200, true, true],
      ],
      [[put(a, { state: 'Suspended' })], [401, 200, true, true]],
      [[put(a, { state: 'Active' })], [200, 200, true, true]],
      [
        [
          { kind: 'key', op: 'del', id: 'a' },
          { kind: 'model', op: 'del', id: 'm' },
        ],
        [401, 200, false, true],
      ],
    ] satisfies ReadonlyArray<readonly [ProjectionChange[], unknown[]]>) {
      await store.write(writer(), 'e1', changes, 0)
      await eventually(() => expect(seen()).toEqual(expected), { everyMs: 5 })
    }
    await eventually(async () => {
      const [process] = await store.liveProcesses()
      expect(process?.acknowledgement).toMatchObject({ epoch: 'e1', revision: 16, source: 'Redis' })
    })
    expect(gateway.loads).toBe(1)
    const names = await keysOf(owner)
    expect(names).toEqual(expect.arrayContaining([KEYS.meta, KEYS.log, KEYS.pods, KEYS.acks, KEYS.records('e1', 'key')]))
    expect(new Set(await Promise.all(names.map((name) => cluster.slotOf(name))))).toEqual(new Set([slot]))
    for (const node of cluster.nodes) {
      if (node !== owner) expect(await keysOf(node)).toEqual([])
      expect(await node.admin.info('errorstats')).not.toMatch(/errorstat_(?:CROSSSLOT|MOVED|ASK|TRYAGAIN)/)
    }
  })

  test('a new epoch reaches a gateway as a complete data set', async () => {
    const [store, kept, deleted, added] = [storeAt(owner), issuedKey('kept'), issuedKey('deleted'), issuedKey('added')]
    await store.rebuild(writer(), 'e1', 10, [put(kept), put(deleted), putModel('m')])
    const gateway = await new Follower(owner).ready()
    await store.rebuild(writer(), 'e2', 11, [put(kept), put(added), putModel('n')])
    await eventually(() => expect(gateway.follower.position).toEqual({ epoch: 'e2', revision: 11 }))
    expect([kept, deleted, added].map((key) => gateway.ask(key))).toEqual([200, 401, 200])
    expect([gateway.serves('m'), gateway.serves('n')]).toEqual([false, true])
    expect(gateway.loads).toBe(2)
  })

  test('an operator at another primary writes nothing to any node, and a gateway there reports the cause and calls no key unknown', async () => {
    const [a, wrong] = [issuedKey('a'), elsewhere()]
    const operator = await leaderAt(wrong, [put(a)])
    expect(operator.projection.available).toBe(false)
    expect(operator.lines.at(-1)).toMatch(
      /^the projection cannot be written: Redis at [\d.:]+ is a cluster \(MOVED \d+ [\d.]+:\d+\); point REDIS_URL/,
    )
    await expect(storeAt(wrong).rebuild(writer(), 'e1', 1, [put(a)])).rejects.toThrow(StoreUnavailable)
    const gateway = new Follower(wrong)
    await gateway.said(IS_A_CLUSTER)
    expect(gateway.follower.loaded).toBe(false)
    expect(gateway.ask(a)).toBe(503)
    for (const node of cluster.nodes) expect(await keysOf(node)).toEqual([])
  })
})

describe('when its slot moves to another primary', () => {
  test('gateways serve the keys that they know and call no other key unknown; changes wait until the slot is back', async () => {
    const [a, late, from] = [issuedKey('a'), issuedKey('late'), owner]
    const operator = await leaderAt(from, [put(a)])
    const gateway = await new Follower(from).ready()
    await cluster.moveSlot(slot, elsewhere())
    await gateway.said(IS_A_CLUSTER)
    operator.want(late)
    await eventually(() =>
      expect(operator.lines.at(-1)).toMatch(/cannot be written: Redis at [\d.:]+ is a cluster \(MOVED \d+ [\d.]+:\d+\); point REDIS_URL/),
    )
    expect([operator.projection.available, operator.projection.isPending('key', 'late')]).toEqual([false, true])
    await waitFor('the gateway to doubt what it knows', () => gateway.follower.unreadForMs >= UNREAD_LIMIT_MS)
    expect([gateway.ask(a), gateway.ask(late)]).toEqual([200, 503])
    await cluster.moveSlot(slot, from)
    await eventually(() => expect([gateway.ask(a), gateway.ask(late)]).toEqual([200, 200]))
    expect(gateway.lines.join('\n')).toContain('works again')
    expect([gateway.loads, gateway.follower.position?.epoch]).toEqual([1, operator.projection.epoch])
    expect(operator.projection.available).toBe(true)
  })

  test('programs with the new primary as REDIS_URL continue with the same data set', async () => {
    const [a, late, to] = [issuedKey('a'), issuedKey('late'), elsewhere()]
    const former = await leaderAt(owner, [put(a)])
    const left = await new Follower(owner).ready()
    await cluster.moveSlot(slot, to)
    await left.said(IS_A_CLUSTER)
    const operator = await leaderAt(to, [put(a)], 2)
    expect(operator.projection.epoch).toBe(former.projection.epoch)
    const gateway = await new Follower(to).ready()
    operator.want(late)
    await eventually(() => expect([gateway.ask(a), gateway.ask(late)]).toEqual([200, 200]))
    expect(gateway.follower.position?.epoch).toBe(former.projection.epoch)
    expect([left.ask(a), left.loads], 'the gateway with the old setting').toEqual([200, 1])
    expect(operator.lines, 'nothing was rebuilt').toEqual([])
  })
})
