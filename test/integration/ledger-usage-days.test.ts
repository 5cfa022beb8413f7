/** Usage per key, model and day outlives Redis: on a real Redis and API server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { RedisConnection } from '#platform/redis-connection.ts'
import type { UsageCounters } from '#contract/ledger/ledger-call.ts'
import { DAY_MS } from '#contract/ledger/ledger-layout.ts'
import { usageKey } from '#contract/usage/ledger-usage.ts'
import { SHARDS_LABEL } from '#contract/records/mounted-folder.ts'
import { RedisLedgerAdmin } from '../../operator/books/redis-ledger-store.ts'
import { closedDay } from '../../operator/books/usage-days.ts'
import { usageCodec, type UsageDays, usageDaysOf } from '../../operator/books/usage-entry.ts'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab, type Lab } from '../support/lab.ts'
import type { RedisPart } from '../support/redis-part.ts'
import type { Stack } from '../support/stack.ts'
import { eventually } from '../support/wait-for.ts'

const SOON = { deadlineMs: 30_000, everyMs: 100 }
const MODELS = ['6f1c1f8e-0b0b-4a53-9d8e-0c7a3f1f2b11', '0d2f7a52-55a1-4a5e-9a43-0c39f3d1c0aa'] as const
const FOLDED = 'headgate_operator_ledger_usage_days_total'
const LARGE = 'x'.repeat(16 * 1024 * 1024)

const used = (model: string, requests: number): UsageCounters => ({
  ...{ model, requests, input: 100 * requests, output: 20 * requests, cached: 0 },
  ...{ cost: 900 * requests, estimated: 1, unpriced: 0 },
})

let calls = 0

/** Counts usage of the present day, as a gateway process does by the library. */
async function count(redis: RedisPart, subject: string, usage: readonly UsageCounters[]): Promise<void> {
  const client = redis.connect('admin')
  calls += 1
  const batch = { number: 1, refunds: [], bookings: [], debts: { r: 0, t: 0 }, usage }
  const call = { subject, process: `p-${calls}`, number: 1, acknowledged: 0, live: 1, seed: '', batch, reports: [] }
  const reply = await new RedisLedgerStore(client, 'hg').call({ ...call, permits: undefined, rates: [], budgets: [] })
  client.disconnect()
  expect(reply.status).toBe('granted')
}

/** Renames the counts of today to those of another day, since the clock of Redis cannot be moved. */
async function moveToday(redis: RedisPart, subject: string, day: number): Promise<void> {
  const [seconds] = await redis.admin.time()
  const today = usageKey('hg', subject, Number(seconds) * 1_000)
  await redis.admin.rename(today, usageKey('hg', subject, day * DAY_MS))
}

/** The last day that is closed, by the clock of Redis. */
async function lastClosed(redis: RedisPart): Promise<number> {
  const [seconds] = await redis.admin.time()
  return closedDay(Number(seconds) * 1_000)
}

let lab: Lab
beforeAll(() => {
  lab = openLab()
})
afterAll(() => lab.close())

describe('the usage of a day as the operator reads it', () => {
  let redis: RedisPart
  let connection: RedisConnection
  let store: RedisLedgerAdmin

  beforeAll(async () => {
    redis = await lab.redis()
    const { REDIS_URL: url, REDIS_USERNAME: username, REDIS_PASSWORD: password } = redis.envFor('operator')
    connection = new RedisConnection({ url, username, password }, 'test', { commandMs: 5_000 })
    store = new RedisLedgerAdmin(connection, 'hg')
    await store.prepare()
  })
  afterEach(() => redis.admin.flushall())
  afterAll(() => connection.close())

  it('equals the counts of the library, by subject and model, and is empty for other subjects', async () => {
    const day = Math.floor((await store.timeMs()) / DAY_MS)
    await count(redis, 'a', [used(MODELS[0], 3), used(MODELS[1], 1)])
    await count(redis, 'a', [used(MODELS[0], 2)])
    const [unknown, a, another] = await store.usage(['unknown', 'a', 'b'], day)
    expect([unknown, another]).toEqual([[], []])
    expect(a?.map(({ model, requests, cost }) => [model, requests, cost])).toEqual([
      [MODELS[1], 1, 900],
      [MODELS[0], 5, 4_500],
    ])
    expect(await store.usage(['a'], day - 1)).toEqual([[]])
  })

  it('holds all 33 fields of a full day, also with the largest numbers', async () => {
    const day = Math.floor((await store.timeMs()) / DAY_MS)
    const full = Array.from({ length: 40 }, (_, at) => used(`${MODELS[0].slice(0, -2)}${at + 10}`, 90_000_000_000))
    await count(redis, 'a', full)
    expect((await store.usage(['a'], day))[0]).toHaveLength(33)
  })

  it('of a damaged subject reads as empty within milliseconds, and that of other subjects reads as before', async () => {
    const day = Math.floor((await store.timeMs()) / DAY_MS)
    const key = (subject: string): string => usageKey('hg', subject, day * DAY_MS)
    await count(redis, 'good', [used(MODELS[0], 3)])
    await redis.admin.set(key('text'), 'x')
    await redis.admin.hset(key('large'), { [MODELS[0]]: LARGE })
    await redis.admin.hset(key('name'), { [LARGE]: '1 0 0 0 0 0 0' })
    await redis.admin.hset(key('many'), Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`m-${at}`, '1 0 0 0 0 0 0'])))
    await redis.admin.hset(key('odd'), { [MODELS[0]]: '1e9 0 0 0 0 0 0', [MODELS[1]]: '1 0 0 0 0 0 0' })
    const started = performance.now()
    const usage = await store.usage(['text', 'large', 'name', 'many', 'odd', 'good'], day)
    expect(performance.now() - started).toBeLessThan(500)
    expect(usage.map((counters) => counters.map(({ requests }) => requests))).toEqual([[], [], [], [], [1], [3]])
  })
})

describe('a Headgate whose Redis is emptied', () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await lab.stack({ gateways: 0 })
  })

  async function keyOf(name: string, spec: Readonly<Record<string, unknown>>): Promise<string> {
    await stack.kube.apply({
      apiVersion: 'headgate.dev/v1alpha1',
      kind: 'ApiKey',
      metadata: { name, namespace: stack.namespace },
      spec: { models: ['*'], ...spec },
    })
    const { metadata } = await stack.untilCondition('ApiKey', name, 'SecretIssued')
    return metadata.uid ?? ''
  }

  const secrets = async (): Promise<TestObject[]> =>
    (await stack.kube.list(objectPath('v1', 'Secret', stack.operatorNamespace))).filter(
      ({ metadata }) => (metadata.labels as Record<string, string> | undefined)?.[SHARDS_LABEL] === 'spend',
    )
  const versions = async (): Promise<unknown> =>
    (await secrets()).map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).toSorted()

  /** The usage of one key in the Secrets, as the next operator would read it. */
  async function durableDays(uid: string): Promise<UsageDays | undefined> {
    for (const { data } of await secrets()) {
      const { entries } = await usageCodec.decode(data as Record<string, string>)
      const entry = entries.find(({ id }) => id === uid)?.entry
      if (entry) return usageDaysOf(entry)
    }
    return undefined
  }

  /** Restarts the operator twice: it walks over all keys when it starts, and writes the found usage when it ends. */
  async function folded(days: number): Promise<void> {
    await stack.operator.restart()
    await eventually(async () => expect(await stack.operator.metric(FOLDED)).toBe(days), SOON)
    await stack.operator.restart()
  }

  it('keeps the usage of each closed day, exactly once, for keys with and without a budget', async () => {
    const plain = await keyOf('plain', { limits: { requestsPerMinute: 10 } })
    const budget = { name: 'life', amount: '25', unit: 'Currency', window: 'Lifetime', onExceeded: 'Block' }
    const budgeted = await keyOf('budgeted', { budgets: [budget] })
    const day = await lastClosed(stack.redis)
    const closed = [used(MODELS[1], 1), used(MODELS[0], 3)]
    for (const uid of [plain, budgeted]) {
      await count(stack.redis, uid, closed)
      await moveToday(stack.redis, uid, day)
      await count(stack.redis, uid, [used(MODELS[0], 7)]) // the present day is in Redis only
    }
    await folded(2)
    const expected: UsageDays = new Map([[day, closed]])
    expect([await durableDays(plain), await durableDays(budgeted)]).toEqual([expected, expected])
    const before = await versions()

    await stack.redis.admin.flushall()
    await stack.operator.restart()
    expect([await durableDays(plain), await durableDays(budgeted)]).toEqual([expected, expected])

    // Redis comes back with the folded day, and with a day of another key
    const later = await keyOf('later', { limits: { requestsPerMinute: 10 } })
    for (const uid of [plain, budgeted, later]) {
      await count(stack.redis, uid, closed)
      await moveToday(stack.redis, uid, day)
    }
    await folded(1)
    expect([await durableDays(plain), await durableDays(budgeted), await durableDays(later)]).toEqual([expected, expected, expected])
    const changed = ((await versions()) as string[]).filter((version) => !(before as string[]).includes(version))
    expect(changed.length, 'the Secret of the new key alone').toBeLessThanOrEqual(1)
  })

  it('deletes the usage of a deleted key', async () => {
    const deleted = await keyOf('deleted', { limits: { requestsPerMinute: 10 } })
    await count(stack.redis, deleted, [used(MODELS[0], 3)])
    await moveToday(stack.redis, deleted, await lastClosed(stack.redis))
    await folded(1)
    expect((await durableDays(deleted))?.size).toBe(1)
    await stack.kube.remove(stack.path('ApiKey', 'deleted'))
    await eventually(async () => expect(await durableDays(deleted)).toBeUndefined(), SOON)
  })
})
