/** The ledger in Redis answers as the ledger in memory, field by field. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MemoryLedgerStore } from '../../gateway/limits/memory-ledger.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import type { LedgerReply } from '../../gateway/shared/ledger-call.ts'
import { LEDGER_TIMING, type LedgerTiming } from '../../gateway/shared/ledger-layout.ts'
import { ledgerKeys } from '../../gateway/shared/redis-keys.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'
import { RandomLedgerCalls } from '../support/random-ledger-calls.ts'
import { SeededRandom } from '../support/seeded-random.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const CALLS = Number(process.env.LEDGER_CALLS ?? 2_000)
const START_MS = Date.UTC(2026, 0, 14, 23, 59, 30, 250)

describe.each([
  ['a minute', LEDGER_TIMING],
  ['6 s in slots of 0.1 s', { windowMs: 6_000, slotMs: 100, leaseMs: 100 }],
] satisfies ReadonlyArray<readonly [string, LedgerTiming]>)('windows of %s', (_, timing) => {
  let redis: LedgerRedis

  beforeAll(async () => {
    redis = await LedgerRedis.start(timing, true)
  })
  afterAll(() => redis.stop())

  test(`${CALLS} random calls get the same replies from memory and Redis (SEED=${SEED})`, async () => {
    const random = new SeededRandom(SEED)
    let nowMs = START_MS
    const memory = new MemoryLedgerStore(() => nowMs, timing)
    const store = new RedisLedgerStore(redis.gateway, 'hg', timing)
    const seen = new Set<LedgerReply['status']>()
    for (let run = 0; run < CALLS / 100; run += 1) {
      const uid = `subject-${run}`
      const calls = new RandomLedgerCalls(random, timing, uid)
      for (let at = 0; at < 100; at += 1) {
        if (at === 10)
          expect(await redis.seed(uid, 'seed-1', [['life:Tokens:Lifetime:0', 40]])).toBe(
            memory.seed(uid, 'seed-1', [['life:Tokens:Lifetime:0', 40]]),
          )
        if (random.chance(0.05)) {
          memory.reap(uid, 'p2')
          await redis.reap(uid, 'p2')
        }
        nowMs += random.chance(0.02) ? -6_000 : random.chance(0.05) ? -500 : random.below(timing.windowMs / 20)
        await redis.setClock(nowMs)
        const call = calls.next(nowMs)
        const reply = memory.answer(call)
        seen.add(reply.status)
        expect(await store.call(call), `call ${at} of ${uid}: ${JSON.stringify(call)}`).toEqual(reply)
        if (reply.status !== 'stale' && reply.status !== 'lost') calls.acknowledged(call)
      }
      const days = [0, 1].map((offset) => Math.floor(START_MS / 86_400_000) + offset)
      for (const day of days) expect(await usageInRedis(redis, uid, day)).toEqual(usageInMemory(memory, uid, day))
    }
    expect([...seen].toSorted()).toEqual(['granted', 'lost', 'short', 'stale', 'unseeded', 'window'])
  })
})

async function usageInRedis(redis: LedgerRedis, uid: string, day: number): Promise<Record<string, number>> {
  const hash = await redis.hash(`${ledgerKeys('hg', uid).use}:${day}`)
  return Object.fromEntries(Object.entries(hash).map(([field, value]) => [field, Number(value)]))
}

function usageInMemory(memory: MemoryLedgerStore, uid: string, day: number): Record<string, number> {
  const fields = memory
    .usage(uid, day)
    .flatMap(({ model, requests: q, input: i, output: o, cached: c, cost: m, estimated: e, unpriced: p }) =>
      Object.entries({ q, i, o, c, m, e, p }).map(([counter, value]) => [`${model}:${counter}`, value] as const),
    )
  return Object.fromEntries(fields.filter(([, value]) => value > 0))
}
