/** The functions of usage in a real Redis, with the rights of the two users. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RedisUsage } from '../../gateway/usage/redis-usage.ts'
import { RedisUsageTaker } from '../../operator/usage/usage-store.ts'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { ledgerKeys, usedAccounts } from '#contract/redis/redis-keys.ts'
import { countsOf, type UsageReport } from '#contract/usage/usage-report.ts'
import { describeUsageStore } from '../contract/usage-store.suite.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'

let redis: LedgerRedis
const gateway = (): RedisUsage => new RedisUsage({ run: (commands) => commands(redis.gateway) }, 'hg')
const operator = (): RedisUsageTaker => new RedisUsageTaker({ run: (commands) => commands(redis.part.admin) }, 'hg')

beforeAll(async () => {
  redis = await LedgerRedis.start(LEDGER_TIMING, 'set')
})
afterAll(() => redis.stop())

describeUsageStore('usage in Redis', () =>
  Promise.resolve({
    gateway: gateway(),
    operator: operator(),
    setClock: (ms) => redis.setClock(ms),
    empty: async () => {
      const keys = await redis.part.admin.keys('hg:l:{account-*')
      if (keys.length > 0) await redis.part.admin.unlink(...keys)
    },
  }),
)

describe('damage', () => {
  const rows = [{ key: 'k', model: 'llama', counts: countsOf({ requests: 1 }) }]
  const report = (account: string, change: Partial<UsageReport> = {}): UsageReport => ({
    account,
    process: 'p',
    number: 1,
    ageMs: 0,
    rows,
    ...change,
  })
  const takeOf = async (account: string) => (await operator().take([{ account, known: 0 }]))[0]

  test('of one account stops the reports of no other', async () => {
    await redis.part.admin.set(ledgerKeys('hg', 'broken').usage, 'x')
    const reports = [report('broken'), report('whole')]
    expect(await gateway().count(reports)).toEqual([reports[1]])
    expect(await takeOf('broken')).toMatchObject({ state: 'lost' })
    expect(await takeOf('whole')).toMatchObject({ state: 'rows' })
    expect(await gateway().count([report('broken')])).toHaveLength(1)
  })

  test.each([
    ['what waits', 'usage', 0],
    ['what was taken', 'taken', 1],
  ] as const)(
    'of tens of megabytes in %s is dropped before the operator reads it, and what is counted later is not',
    async (_, key, takes) => {
      const account = `large-${key}`
      const keys = ledgerKeys('hg', account)
      for (let row = 0; row < 40; row++)
        await redis.part.admin.hset(keys[key], `20000\nk${row}\n${'m'.repeat(2 ** 19)}`, '1 1 1 1 1 1 1 1 1 1 1')
      if (takes > 0) await redis.part.admin.hset(keys.takes, 'n', String(takes))
      expect(await takeOf(account)).toMatchObject({ state: 'lost' })
      expect(await redis.part.admin.exists(keys.usage, keys.taken)).toBe(0)
      await gateway().count([report(account)])
      expect(await takeOf(account)).toMatchObject({ state: 'rows', rows })
    },
  )

  test('in the names of a row loses that row alone', async () => {
    const { usage } = ledgerKeys('hg', 'long-names')
    const counts = countsOf({ requests: 1 }).join(' ')
    await redis.part.admin.hset(usage, `20000\nk\n${'m'.repeat(300)}`, counts, `20000\n${'k'.repeat(300)}\nllama`, counts)
    await gateway().count([report('long-names')])
    expect(await takeOf('long-names')).toMatchObject({ state: 'rows', rows: [rows[0]] })
  })

  test.each([
    ['a row', 'usage', '20000\nk\nllama', 'many'],
    ['a row with too many counts', 'usage', '20000\nk\nllama', Array.from({ length: 40 }, () => '1').join(' ')],
    ['a row of megabytes', 'usage', '20000\nk\nllama', '1 '.repeat(2 ** 20)],
    ['a number of a process', 'counted', 'b:p', 'x'.repeat(1_000)],
    ['the number of takes', 'takes', 'n', 'x'.repeat(2 ** 20)],
  ] as const)('%s is worth nothing, and what is counted later is', async (what, key, field, value) => {
    const account = what.replaceAll(' ', '-')
    await redis.setClock(20_000 * 86_400_000)
    await redis.part.admin.hset(ledgerKeys('hg', account)[key], field, value)
    await gateway().count([report(account)])
    expect(await takeOf(account)).toMatchObject({ state: 'rows', rows: [{ ...rows[0], day: 20_000 }] })
  })

  test.each<[string, unknown]>([
    ['no JSON', '{'],
    ['a count below 0', report('odd', { rows: [{ key: 'k', model: 'm', counts: countsOf({ requests: -1 }) }] })],
    ['a fraction', report('odd', { rows: [{ key: 'k', model: 'm', counts: countsOf({ requests: 0.5 }) }] })],
    ['too few counts', report('odd', { rows: [{ key: 'k', model: 'm', counts: [1] }] })],
    ['too many rows', report('odd', { rows: Array.from({ length: 257 }, () => rows[0]!) })],
    ['a long name', report('odd', { rows: [{ key: 'k', model: 'm'.repeat(600), counts: countsOf({}) }] })],
  ])('a report with %s is refused as a whole', async (_, body) => {
    const { usage, counted } = ledgerKeys('hg', 'odd')
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    await expect(redis.gateway.fcall(redis.functions.count, 3, usage, counted, usedAccounts('hg'), text)).rejects.toThrow(/ledger: /)
    expect(await redis.part.admin.exists(usage, counted)).toBe(0)
  })

  test('a gateway may not take usage', async () => {
    const { usage, taken, takes } = ledgerKeys('hg', 'mine')
    await gateway().count([report('mine')])
    await expect(redis.gateway.fcall(redis.functions.take, 3, usage, taken, takes, '0')).rejects.toThrow(/can't run this command/)
    expect(await takeOf('mine')).toMatchObject({ state: 'rows' })
  })
})
