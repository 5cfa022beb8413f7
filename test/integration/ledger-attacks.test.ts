/**
 * A gateway that was taken over may store any value in the counters and call the library with any arguments. No call blocks Redis, grants more
 * than its limit, or changes the counters of another subject.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LedgerCallRefused } from '../../gateway/limits/ledger.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { bookingSlot, DAY_MS, LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { encodeLedgerCall } from '#contract/ledger/ledger-wire.ts'
import { ledgerKeys, settledSubjects } from '#contract/redis/redis-keys.ts'
import { callOf, rate } from '../contract/ledger-store.suite.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'
import { SeededRandom } from '../support/seeded-random.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const NOW_MS = Date.UTC(2026, 0, 14, 12, 0, 0, 250)
const SLOT = bookingSlot(NOW_MS, 0, LEDGER_TIMING)
const LIMIT = 10
const AMOUNT = 1_000
const TODAY = Math.floor(NOW_MS / DAY_MS) * DAY_MS
const FIELD = `day:Currency:Day:${TODAY}`
/** A call that takes longer in Redis blocks Redis: a normal call takes less than a thousandth of this, µs. */
const MAX_US = 1_000_000
const LONG_BYTES = 512 * 2 ** 20 - 1_024 // the longest value that Redis stores

let redis: LedgerRedis
let store: RedisLedgerStore
let number = 0

beforeAll(async () => {
  redis = await LedgerRedis.start(LEDGER_TIMING, 'set')
  store = new RedisLedgerStore(redis.gateway, 'hg')
  await redis.part.admin.config('SET', 'slowlog-log-slower-than', String(MAX_US))
})
afterAll(() => redis.stop())

beforeEach(async () => {
  await redis.part.admin.flushall()
  await redis.setClock(NOW_MS)
  await Promise.all(['s', 'other'].map((subject) => redis.seed(subject, 'seed-1')))
  await mergeBooks('s', 'other')
  await redis.part.admin.slowlog('RESET')
})

async function mergeBooks(...names: readonly string[]): Promise<void> {
  const books = { openFrom: 0, closedSpend: 0n, spent: new Map<string, number>() }
  await redis.balances.mergeBalances(names.map((name) => ({ name, books, isReady: true })))
}

function whole(subject: string): LedgerCall {
  const refunds = [{ kind: 'r' as const, slot: SLOT, amount: 1 }]
  number += 2
  return callOf({
    subject,
    number,
    process: 'p1',
    batch: { number: number - 1, refunds, bookings: [], debts: { r: 0, t: 1 } },
    reports: [{ field: FIELD, seed: 'seed-1', held: 0, spent: 0, acknowledged: 0, base: 0, seen: 0 }],
    permits: { limit: LIMIT, held: 0, need: 1, ask: 1, want: 0 },
    rates: [rate({ limit: LIMIT, need: 1, ask: 100 }), rate({ kind: 't', limit: LIMIT, need: 1, ask: 100 })],
    budgets: [
      {
        ...{ budget: 'day:Currency:Day', amount: AMOUNT, need: 1, ask: 5_000, want: 0 },
        windows: [
          { startMs: TODAY, endMs: TODAY + DAY_MS },
          { startMs: TODAY + DAY_MS, endMs: TODAY + 2 * DAY_MS },
        ],
      },
    ],
    balance: {
      ...{ credits: { high: 0, low: AMOUNT }, period: 1, held: 0, spent: [{ period: 1, spent: 0 }] },
      ...{ need: 1, ask: 5_000, want: 0 },
    },
  })
}

async function expectUnharmed(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    const reply = await store.call(whole('s')).catch((error: unknown) => {
      expect(error).toBeInstanceOf(LedgerCallRefused)
    })
    if (reply) expectWithinLimits(reply)
  }
  const other = await store.call(whole('other'))
  expectWithinLimits(other)
  expect(['granted', 'short']).toContain(other.status)
  const slow = await redis.part.admin.slowlog('GET', '10')
  expect(
    (slow as unknown as Array<readonly [number, number, number, string[]]>).filter(([, , , [name = '']]) => /fcall/i.test(name)),
  ).toEqual([])
}

function expectWithinLimits(reply: LedgerReply): void {
  if (reply.status !== 'granted' && reply.status !== 'short') return
  for (const { grant, rest } of reply.rates) {
    expect(grant).toBeLessThanOrEqual(LIMIT)
    expect(rest).toBeLessThanOrEqual(LIMIT)
  }
  expect(reply.permits?.grant ?? 0).toBeLessThanOrEqual(LIMIT)
  for (const { grant } of reply.budgets) expect(grant).toBeLessThanOrEqual(AMOUNT)
  expect(reply.balance?.grant ?? 0).toBeLessThanOrEqual(AMOUNT)
}

const keys = ledgerKeys('hg', 's')
const FIELDS: ReadonlyArray<readonly [key: string, fields: readonly string[]]> = [
  [keys.rate, ['rtot', 'rold', 'rnew', `r:${SLOT}`, `t:${SLOT}`, 'ttot', 'told', 'tnew']],
  [keys.conc, ['n:p1', 'x:p1', 'n:p2', 'x:p2', 'n:', 'y:p1']],
  [keys.budget, ['seed', ...['s', 'H', 'B', 'u', 'h:p1', 'c:p1', 'z:p1'].map((part) => `${FIELD}:${part}`)]],
  [keys.proc, ['now', 'q:p1', 'b:p1']],
  [keys.balance, ['T', 'bh', 'bl', 'n', 's', 'H', 'h:p1', 'c:1:p1']],
]
const VALUES = [
  '',
  'x',
  '-1',
  '1e9',
  '0x10',
  ' 1',
  '-1500000000',
  '9007199254740991',
  '9007199254740992',
  '9'.repeat(40),
  '7'.repeat(100_000),
]

describe('values stored by an attacker', () => {
  test.each(FIELDS)('%s: a field with any value does no harm', async (key, fields) => {
    for (const field of fields) {
      for (const value of VALUES) {
        await store.call(whole('s')).catch(() => undefined)
        await redis.part.admin.hset(key, field, value)
        await expectUnharmed()
        if (value.length > 10) await redis.part.admin.del(key) // so that the next field is tested alone
        if (key === keys.budget) await redis.seed('s', 'seed-1')
        if (key === keys.balance) await redis.balances.dropBalances(['s'])
        if (key === keys.balance) await mergeBooks('s')
      }
    }
  })

  test.each(FIELDS)('%s: a key of another type does no harm', async (key) => {
    const { admin } = redis.part
    const makers = [
      () => admin.set(key, 'x'),
      () => admin.rpush(key, ...Array.from({ length: 1_000 }, String)),
      () => admin.zadd(key, 1, 'now'),
      () => admin.sadd(key, 'now'),
      () => admin.xadd(key, '*', 'now', '1'),
    ]
    for (const make of makers) {
      await admin.del(key)
      await make()
      await expectUnharmed()
    }
  })

  test.each(FIELDS.map(([key, fields]) => [key, fields[0] ?? ''] as const))('%s: a value of 512 MiB does no harm', async (key, field) => {
    await store.call(whole('s'))
    await redis.part.admin.hset(key, field, Buffer.alloc(LONG_BYTES, '7'))
    await store.call(whole('s')).catch(() => undefined) // this call may free the value, which takes less time than to store the value, and happens only once
    await redis.part.admin.slowlog('RESET')
    await expectUnharmed()
    await redis.part.admin.unlink(key)
  })

  test.each(FIELDS.map(([key]) => key))('%s: 50,000 fields do no harm', async (key) => {
    await store.call(whole('s'))
    const prefix = key === keys.conc ? 'n:' : key === keys.proc ? 'q:' : 'r:'
    for (let from = 0; from < 50_000; from += 5_000) {
      await redis.part.admin.hset(key, Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`${prefix}${from + at}`, '1'])))
    }
    await expectUnharmed()
  })

  test('forged permits refuse calls for less than a minute, and are then removed', async () => {
    await redis.part.admin.hset(keys.conc, Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`n:p${at}`, '1'])))
    await expect(store.call(whole('s'))).rejects.toThrow(LedgerCallRefused)
    expect(await redis.part.admin.ttl(keys.conc)).toBeGreaterThan(0)
  })

  test('a forged total of a window refuses one call', async () => {
    await store.call(whole('s'))
    await redis.part.admin.hset(keys.rate, 'rtot', '9007199254740991')
    expect(await store.call(callOf({ subject: 's', number: (number += 2), rates: [rate({ limit: 100, need: 1, ask: 1 })] }))).toMatchObject(
      {
        status: 'short',
      },
    )
    expect(await store.call(callOf({ subject: 's', number: (number += 2), rates: [rate({ limit: 100, need: 1, ask: 1 })] }))).toMatchObject(
      {
        status: 'granted',
      },
    )
  })
})

test(`an invented call does no harm (SEED=${SEED})`, async () => {
  const random = new SeededRandom(SEED)
  const { rate: rates, conc, budget, proc, balance } = keys
  const acquire = async (...args: string[]): Promise<unknown> => {
    try {
      return await redis.gateway.fcall(redis.functions.acquire, 6, rates, conc, budget, proc, settledSubjects('hg'), balance, ...args)
    } catch (error) {
      expect((error as Error).message).toMatch(/^ERR ledger: /)
      return undefined
    }
  }
  const values = ['""', '"x"', '-1', '-0', '0', '0.5', '1', '160', '1e9', '1e400', '9007199254740991', '9007199254740993', '"r"', '"z"']
  const others = ['null', 'true', '{}', '[]', '[[]]', 'NaN', '0x10', '', JSON.stringify('x'.repeat(600)), `[${'{},'.repeat(200)}{}]`]
  let answered = 0
  for (let run = 0; run < 2_000; run += 1) {
    // a value is a number, a string, or a list or an object without another in it
    const parts = encodeLedgerCall(whole('s')).split(/(-?\d+(?=[,}\]])|"[^"]*"(?=[,}\]])|\{[^{}]*\}|\[[^[\]]*\])/)
    for (let change = random.below(3); change >= 0; change -= 1) {
      const at = 2 * random.below((parts.length - 1) / 2) + 1
      const from = random.chance(0.7) ? values : others
      parts[at] = from[random.below(from.length)] ?? ''
    }
    if ((await acquire(parts.join(''))) !== undefined) answered += 1
  }
  expect(answered).toBeGreaterThan(100)
  const text = encodeLedgerCall(whole('s'))
  for (const args of [[], [text, text], [''], ['7'], ['null'], ['"x"'], ['['.repeat(5_000)], [text.slice(0, -1)], [' '.repeat(200_000)]]) {
    expect(await acquire(...args)).toBeUndefined()
  }
  expect(answered).toBeGreaterThan(100)
  await redis.part.admin.del(...Object.values(keys))
  await redis.seed('s', 'seed-1')
  await mergeBooks('s')
  await expectUnharmed()
})
