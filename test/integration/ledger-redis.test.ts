/** The ledger in Redis gives the same answers as the ledger in memory, field by field. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LedgerCallRefused } from '../../gateway/limits/ledger.ts'
import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import type { BalanceRequest, LedgerBatch, LedgerReply } from '#contract/ledger/ledger-call.ts'
import type { BalanceRead, BalanceStore } from '../../operator/books/balance-store.ts'
import { LEDGER_TIMING, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { MODEL_TIMING, type StoreEvent } from '../support/ledger-model.ts'
import { runSchedules, SCHEDULES } from '../support/ledger-schedules.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'
import { type BalanceStep, RandomLedgerCalls } from '../support/random-ledger-calls.ts'
import { SeededRandom } from '../support/seeded-random.ts'
import { describeLedgerBalances } from '../contract/ledger-balance.suite.ts'
import { callOf, describeLedgerStore, type LedgerStoreSubject, rate, report } from '../contract/ledger-store.suite.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const CALLS = Number(process.env.LEDGER_CALLS ?? 2_000)
const SCHEDULE_RUNS = Number(process.env.LEDGER_SCHEDULES ?? 50)
const KINDS = Object.keys(SCHEDULES) as Array<keyof typeof SCHEDULES>
const START_MS = Date.UTC(2026, 0, 14, 23, 59, 30, 250)

describe.each([
  ['a minute', LEDGER_TIMING],
  ['6 s in slots of 0.1 s', { windowMs: 6_000, slotMs: 100, leaseMs: 100 }],
] satisfies ReadonlyArray<readonly [string, LedgerTiming]>)('windows of %s', (_, timing) => {
  let redis: LedgerRedis

  beforeAll(async () => {
    redis = await LedgerRedis.start(timing, 'set')
  })
  afterAll(() => redis.stop())

  test(`${CALLS} random calls get the same replies from memory and Redis (SEED=${SEED})`, async () => {
    const random = new SeededRandom(SEED)
    let nowMs = START_MS
    const memory = new MemoryLedgerStore(() => nowMs, timing)
    const store = new RedisLedgerStore(redis.gateway, 'hg', timing)
    const seen = new Set<LedgerReply['status'] | 'refused'>()
    const balanced = new Set<string>()
    const byOperator = async (uid: string, at: number): Promise<void> => {
      if (at === 10 || (at > 10 && random.chance(0.03))) {
        const checkpoints = [['life:Tokens:Lifetime:0', 40 * random.below(at)]] as const
        expect(await redis.seed(uid, `seed-${at}`, checkpoints)).toBe(memory.seed(uid, `seed-${at}`, checkpoints))
      }
      if (!random.chance(0.05)) return
      memory.reap(uid, 'p2')
      await redis.reap(uid, 'p2')
    }
    const step = async (uid: string, one: BalanceStep): Promise<void> => {
      await takeStep(memory, uid, one)
      await takeStep(redis.balances, uid, one)
      expect(await redis.balances.readBalances([uid]), JSON.stringify(one, textOf)).toEqual(memory.readBalances([uid]))
    }
    for (let run = 0; run < CALLS / 100; run += 1) {
      const uid = `subject-${run}`
      const calls = new RandomLedgerCalls(random, timing, uid)
      for (let at = 0; at < 100; at += 1) {
        await byOperator(uid, at)
        if (random.chance(0.1)) await step(uid, calls.balanceStep())
        nowMs += clockStepMs(random, timing)
        await redis.setClock(nowMs)
        const call = calls.next(nowMs)
        const reply = await outcome(async () => memory.answer(call))
        expect(await outcome(() => store.call(call)), `call ${at} of ${uid}: ${JSON.stringify(call)}`).toEqual(reply)
        seen.add(reply === 'refused' ? reply : reply.status)
        if (reply === 'refused') continue
        balanced.add(shortOf(reply))
        if (reply.status !== 'stale' && reply.status !== 'lost') calls.acknowledged(call, 'seed' in reply ? reply.seed : undefined)
      }
    }
    seen.delete('refused') // seldom: too much spend of a balance
    expect([...seen].toSorted()).toEqual(['granted', 'lost', 'short', 'stale', 'unseeded', 'window'])
    expect([...balanced].toSorted()).toEqual(['Exhausted', 'Held', 'No', 'TooSmall', 'without a balance'])
  })
})

/** Now and then the clock goes back. */
function clockStepMs(random: SeededRandom, { windowMs }: LedgerTiming): number {
  if (random.chance(0.02)) return -6_000
  return random.chance(0.05) ? -500 : random.below(windowMs / 20)
}

function shortOf(reply: LedgerReply): string {
  return 'balance' in reply ? (reply.balance?.short ?? 'without a balance') : 'without a balance'
}

interface BalanceWrites {
  mergeBalances(rows: Parameters<BalanceStore['mergeBalances']>[0]): unknown
  raisePeriods(rows: Parameters<BalanceStore['raisePeriods']>[0]): unknown
  freeHolds(rows: Parameters<BalanceStore['freeHolds']>[0]): unknown
  readBalances(names: readonly string[]): readonly BalanceRead[] | Promise<readonly BalanceRead[]>
}

async function takeStep(store: BalanceWrites, name: string, one: BalanceStep): Promise<void> {
  if (one.do === 'merge') await store.mergeBalances([{ name, ...one }])
  if (one.do === 'raise') await store.raisePeriods([{ name, ...one }])
  if (one.do !== 'free') return
  const [read] = await store.readBalances([name])
  const held = typeof read === 'object' ? (read.holders.get(one.process) ?? 0) : 0
  await store.freeHolds([{ name, process: one.process, held: one.isStale ? held + 1 : held }])
}

describe('schedules of several processes', () => {
  let redis: LedgerRedis

  beforeAll(async () => {
    redis = await LedgerRedis.start(MODEL_TIMING, 'set')
  })
  afterAll(() => redis.stop())

  test.each(KINDS)(`${SCHEDULE_RUNS} with %s get the same replies from memory and Redis (SEED=${SEED})`, async (kind) => {
    const store = new RedisLedgerStore(redis.gateway, 'hg', MODEL_TIMING)
    const repeat = async (event: StoreEvent): Promise<void> => {
      if (event.do === 'seed') await redis.seed(event.subject, event.seed, event.checkpoints)
      else if (event.do === 'reap') await redis.reap(event.subject, event.process)
      else if (event.do === 'wipe') await redis.part.admin.del(...Object.values(ledgerKeys('hg', event.subject)))
      else if (event.do === 'go back') {
        await redis.part.admin.flushall()
        for (const past of event.past) await repeat(past)
      } else {
        await redis.setClock(event.atMs)
        expect(await store.call(event.call)).toEqual(event.reply)
      }
    }
    const onJournal = async (journal: readonly StoreEvent[]): Promise<void> => {
      await redis.part.admin.flushall()
      for (const event of journal) await repeat(event)
    }
    expect(await runSchedules(kind, { seed: SEED, runs: SCHEDULE_RUNS, onJournal })).toBeGreaterThan(SCHEDULE_RUNS)
  })
})

describe('Redis with the library', () => {
  let redis: LedgerRedis
  let store: RedisLedgerStore

  beforeAll(async () => {
    redis = await LedgerRedis.start(LEDGER_TIMING, 'set')
    store = new RedisLedgerStore(redis.gateway, 'hg')
  })
  afterAll(() => redis.stop())

  const makeSubject = async (): Promise<LedgerStoreSubject> => {
    const { admin } = redis.part
    await admin.flushall()
    return {
      store,
      setClock: (nowMs) => redis.setClock(nowMs),
      seed: (subject, seed, checkpoints) => redis.seed(subject, seed, checkpoints),
      reap: (subject, process) => redis.reap(subject, process),
      forget: (subject, fields) => redis.forget(subject, fields),
      balances: redis.balances,
      wipe: (subject) => admin.del(...Object.values(ledgerKeys('hg', subject))),
    }
  }
  describeLedgerStore("a gateway's user of Redis", makeSubject)
  describeLedgerBalances("a gateway's user of Redis", makeSubject)

  describe('a balance that a gateway has forged', () => {
    const { balance: key } = ledgerKeys('hg', 's')
    const read = async () => (await redis.balances.readBalances(['s']))[0]
    const merge = () =>
      redis.balances.mergeBalances([{ name: 's', books: { openFrom: 2, closedSpend: 5n, spent: new Map([['2:p1', 7]]) }, isReady: true }])

    beforeEach(async () => {
      await redis.part.admin.flushall()
      await redis.setClock(START_MS)
      await merge()
    })

    test.each([
      { s: '0' },
      { s: '8' },
      { H: '3' },
      { 'h:p1': '3' },
      { 'c:2:p1': '6' },
      { 'c:1:p1': '1', s: '8' },
      { 'c:02:p1': '1', s: '8' },
      { 'c:x:p1': '1' },
      { T: '-1' },
      { bl: '1000000000000000' },
      { n: '9007199254740991' },
      { bh: '1e9' },
      { 'c:2:p2': '7'.repeat(100_000) },
    ])('reads as damage, and is right again after a drop and a merge: %j', async (fields) => {
      const good = await read()
      await redis.part.admin.hset(key, fields)
      expect(await read()).toBe('damaged')
      await redis.balances.dropBalances(['s'])
      await merge()
      expect(await read()).toEqual(good)
    })

    test.each([
      { 'c:2:p1': '0', s: '0' },
      { 'c:2:p1': '6', s: '6' },
    ])('that is only too low is right again after a merge alone: %j', async (fields) => {
      const good = await read()
      await redis.part.admin.hset(key, fields)
      await merge()
      expect(await read()).toEqual(good)
    })

    test('a key of another type reads as damage, and refuses only the calls of its account', async () => {
      await redis.balances.mergeBalances([{ name: 'other', books: { openFrom: 0, closedSpend: 0n, spent: new Map() }, isReady: true }])
      await redis.part.admin.del(key)
      await redis.part.admin.set(key, 'x')
      await merge() // leaves it as it is
      expect((await redis.balances.readBalances(['s', 'other'])).map((found) => typeof found === 'string' && found)).toEqual([
        'damaged',
        false,
      ])
      const ask = { credits: { high: 0, low: 9 }, period: 0, held: 0, spent: [], need: 1, ask: 1, want: 0 }
      await expect(store.call(callOf({ number: 1, balance: ask }))).rejects.toThrow(LedgerCallRefused)
      expect(await store.call(callOf({ subject: 'other', number: 2, balance: ask }))).toMatchObject({ status: 'granted' })
    })

    test.each<Pick<BalanceRequest, 'period' | 'spent' | 'credits'>>([
      {
        period: 1,
        spent: [
          { period: 2, spent: 1 },
          { period: 2, spent: 1 },
        ],
      },
      {
        period: 1,
        spent: [
          { period: 3, spent: 1 },
          { period: 2, spent: 1 },
        ],
      },
      { period: 2_000_000_000, spent: [] },
      { period: 1, spent: Array.from({ length: 9 }, (_, period) => ({ period, spent: 1 })) },
      { period: 1, spent: [{ period: 2, spent: 0.5 }] },
      { period: 1, spent: [{ period: 2, spent: -1 }] },
      { period: 1, spent: [], credits: { high: 0, low: 10 ** 15 } },
      { period: 1, spent: [], credits: { high: 0.5, low: 0 } },
      { period: 1, spent: [], credits: { high: 0, low: -1 } },
    ])('an invented report counts nothing: %j', async (invented) => {
      const good = await read()
      const balance = { held: 0, need: 0, ask: 0, want: 0, ...invented }
      await expect(store.call(callOf({ number: 1, balance }))).rejects.toThrow(LedgerCallRefused)
      expect(await read()).toEqual(good)
    })
  })

  test('L9 what a late call writes about a deleted key expires', async () => {
    const { admin } = redis.part
    await admin.flushall()
    await redis.setClock(START_MS)
    const late = { reports: [report({ field: 'day:Currency:Day:0', spent: 5 })], permits: { limit: 3, held: 2, need: 0, ask: 0, want: 0 } }
    await store.call(callOf({ ...late, batch: { number: 1, refunds: [], bookings: [], debts: { r: 0, t: 7 } } }))
    const left = Object.values(ledgerKeys('hg', 's'))
    const lives = await Promise.all(left.map((key) => admin.pttl(key)))
    expect(lives.filter((ms) => ms > 0)).toHaveLength(3)
    expect(lives.filter((ms) => ms === -1)).toEqual([])
  })

  describe('forged values', () => {
    const keys = ledgerKeys('hg', 's')
    const one = (number: number) => callOf({ number, rates: [rate({ limit: 10, need: 1, ask: 1 })] })

    beforeEach(async () => {
      await redis.part.admin.flushall()
      await redis.setClock(START_MS)
    })

    test.each([
      { rtot: '5', rold: '-1500000000', rnew: '1768435235' },
      { rtot: '5', rold: '1', rnew: '1768435235' },
      { rtot: '99999999999999999999', rold: '1768435171', rnew: '1768435235' },
      { rtot: 'many', rold: '1768435171', rnew: '1768435235' },
      { rtot: '5', rold: '1768435171', rnew: '1768435235', 'r:1768435230': '-7' },
      { rtot: '-5', rold: '1768435171', rnew: '1768435235' },
    ])('a damaged window is dropped, and does not block Redis: %j', async (fields) => {
      await redis.part.admin.hset(keys.rate, fields)
      expect(await store.call({ ...one(1), rates: [rate({ limit: 10, need: 1, ask: 1 })], batch: refundOf(1_768_435_230) })).toMatchObject({
        status: 'granted',
        rates: [{ rest: 9 }],
      })
    })

    test('a key of another type, or a spend that is not an integer, refuses only the calls of that subject', async () => {
      await redis.part.admin.set(keys.rate, 'x')
      await expect(store.call(one(1))).rejects.toThrow(LedgerCallRefused)
      await redis.part.admin.del(keys.rate)
      await redis.seed('s', 'seed-1')
      await redis.part.admin.hset(keys.budget, 'day:Currency:Day:0:s', '1e9')
      await expect(store.call(callOf({ number: 2, reports: [report({ field: 'day:Currency:Day:0' })] }))).rejects.toThrow(LedgerCallRefused)
      expect(await store.call({ ...one(3), subject: 'other' })).toMatchObject({ status: 'granted' })
    })

    test('calls of a subject with permits of impossibly many processes are refused', async () => {
      const fields = Object.fromEntries(Array.from({ length: 2_100 }, (_, at) => [`n:p${at}`, '1']))
      await redis.part.admin.hset(keys.conc, fields)
      const permits = { limit: 5, held: 0, need: 1, ask: 1, want: 0 }
      await expect(store.call(callOf({ number: 1, permits }))).rejects.toThrow('too many processes')
    })
  })

  test('a refused call writes nothing', async () => {
    await redis.part.admin.flushall()
    await redis.setClock(START_MS)
    const rates = [rate({ limit: 10, need: 1, ask: 1 })]
    await expect(store.call(callOf({ number: 1, rates, reports: [report({ field: 'x'.repeat(600) })] }))).rejects.toThrow(LedgerCallRefused)
    expect(await redis.part.admin.keys('hg:l:{s}*')).toEqual([])
  })

  test('amounts up to 2^53 - 1 keep every digit', async () => {
    await redis.part.admin.flushall()
    await redis.setClock(START_MS)
    const spent = Number.MAX_SAFE_INTEGER - 1
    await redis.seed('s', 'seed-1')
    expect(await store.call(callOf({ number: 1, reports: [report({ spent })] }))).toMatchObject({ spent: [spent] })
    expect((await redis.hash(ledgerKeys('hg', 's').budget))[`${report().field}:s`]).toBe(String(spent))
  })

  test('every key except the budgets expires', async () => {
    await redis.part.admin.flushall()
    await redis.setClock(START_MS)
    await redis.seed('s', 'seed-1')
    const permits = { limit: 5, held: 1, need: 0, ask: 0, want: 0 }
    const batch = { number: 1, refunds: [], bookings: [], debts: { r: 1, t: 0 } }
    await store.call(callOf({ number: 2, batch, permits, reports: [report({ spent: 1 })] }))
    const keys = await redis.part.admin.keys('hg:l:{s}*')
    const lives = await Promise.all(keys.map(async (key) => [key, await redis.part.admin.ttl(key)] as const))
    expect(lives).toHaveLength(4)
    for (const [key, seconds] of lives) expect([key, seconds > 0]).toEqual([key, !key.endsWith('budget')])
  })

  test("a gateway's user can neither run its own scripts nor replace the library nor read another prefix", async () => {
    for (const command of [
      ['EVAL', 'return 1', '0'],
      ['FUNCTION', 'FLUSH'],
      ['SCRIPT', 'FLUSH'],
      ['KEYS', '*'],
      ['HGETALL', 'hg:{proj}:meta'],
    ]) {
      const [name = '', ...args] = command
      await expect(redis.gateway.call(name, ...args)).rejects.toThrow(/NOPERM/)
    }
    await expect(redis.gateway.fcall(redis.functions.acquire, 4, 'a', 'b', 'c', 'd')).rejects.toThrow(/NOPERM|No permissions/)
  })

  test('a missing library refuses calls until the operator has loaded it', async () => {
    await redis.part.admin.call('FUNCTION', 'FLUSH')
    await expect(store.call(callOf({ number: 1 }))).rejects.toThrow(LedgerCallRefused)
    await redis.load(redis.functions.code)
    expect(await store.call(callOf({ subject: 'fresh', number: 2 }))).toMatchObject({ status: 'granted' })
  })
})

/** A reply, or that the store refuses the call. */
async function outcome(call: () => Promise<LedgerReply>): Promise<LedgerReply | 'refused'> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof LedgerCallRefused) return 'refused'
    throw error
  }
}

/** Sums are no JSON. */
function textOf(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value instanceof Map ? [...value] : value
}

function refundOf(slot: number): LedgerBatch {
  return { number: 1, refunds: [{ kind: 'r', slot, amount: 1 }], bookings: [], debts: { r: 0, t: 0 } }
}
