/** Keys with limits while Redis stands still, is emptied or comes back empty. A failure of Headgate is 503 or the share of a pod, never 401 or 429. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectRow, type Answer } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { LimitedAnswers, lifeBudget } from '../support/limited-answers.ts'
import type { IssuedKey } from '../support/records.ts'
import { LIMITS_UNAVAILABLE } from '../support/rows.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** Longest life of a lease of a limit that is less than half used, and some slack, ms. */
const LEASE_MS = 11_000

const lab = openLab()
let limits: LimitedAnswers
let count = 0

beforeAll(async () => {
  limits = await LimitedAnswers.open(lab, 'failures', { env: { MAX_REPLICAS: '4' } })
})
afterAll(() => limits.close())

/** More than a test uses, so that only Redis can refuse a call. */
const RPM = 100_000
const closed = (): Promise<IssuedKey> => limits.issue(`closed-${count++}`, { limits: { requestsPerMinute: RPM } })
const shared = (requestsPerMinute: number): Promise<IssuedKey> =>
  limits.issue(`shared-${count++}`, { limits: { requestsPerMinute }, onStoreUnavailable: 'LocalShare' })

function until(status: number, key: IssuedKey): Promise<Answer> {
  return waitFor(`the status ${status}`, async () => {
    const answer = await limits.call(key)
    return answer.status === status && answer
  })
}

describe('Redis that stands still', () => {
  test('E18 FailClosed answers 503 while Redis stands still, and calls continue once Redis does, without a restart', async () => {
    const [key, unlimited] = [await closed(), await limits.issue(`unlimited-${count++}`, {})]
    expect((await limits.call(key)).status).toBe(200)
    const { pid } = limits.gateway.process
    await limits.redis.process.kill('SIGSTOP')
    try {
      expectRow(await until(503, key), 'openai', LIMITS_UNAVAILABLE) // leased units are used first
      for (let i = 0; i < 20; i += 1) expectRow(await limits.call(key, { format: 'anthropic' }), 'anthropic', LIMITS_UNAVAILABLE)
      const view = await fetch(`${limits.gateway.url}/v1/key`, { headers: { authorization: `Bearer ${key.credential}` } })
      expect([view.status, view.headers.get('retry-after')]).toEqual([503, '5'])
      expect((await limits.call(unlimited)).status, 'a key without limits needs no Redis').toBe(200)
    } finally {
      await limits.redis.process.kill('SIGCONT')
    }
    await until(200, key)
    expect(limits.gateway.process.pid).toBe(pid)
  })

  test('LocalShare admits no more than the share of the pod, and these admissions count afterwards', async () => {
    const key = await shared(6)
    expect((await limits.call(key)).status).toBe(200)
    await sleep(300) // by now the use of the first call is known
    await limits.redis.process.kill('SIGSTOP')
    try {
      const statuses: number[] = []
      for (let i = 0; i < 12; i += 1) statuses.push((await limits.call(key)).status)
      expect(
        statuses.filter((status) => status === 200),
        'one pod lives, and one call was admitted before',
      ).toHaveLength(5)
      expect(new Set(statuses)).toEqual(new Set([200, 429]))
    } finally {
      await limits.redis.process.kill('SIGCONT')
    }
    await eventually(async () => expect(await limits.gateway.metric('headgate_limit_store_breaker{state="closed"}')).toBe(1))
    expect((await limits.call(key)).status).toBe(429)
    await eventually(async () => expect(Number((await limits.ledger(key.record.uid, 'rate'))['rtot'])).toBe(6))
  })
})

describe('Redis that was emptied', () => {
  test('learns admissions and spend from the pods, also those of keys without calls since', async () => {
    const budget = lifeBudget({ amount: 1_000 })
    const limit = await limits.issue('wiped-limit', { limits: { requestsPerMinute: 5 } })
    const spending = await limits.issue('wiped-budget', { budgets: [budget] })
    const fields = { max_tokens: 200, messages: [{ role: 'user', content: 'hi' }] }
    for (let i = 0; i < 3; i += 1) expect((await limits.call(limit)).status).toBe(200)
    for (let i = 0; i < 2; i += 1) expect((await limits.call(spending, { fields })).status).toBe(200)
    const spent = await eventuallySpent('wiped-budget')
    await limits.redis.admin.flushall()
    expectRow(await until(503, spending), 'openai', LIMITS_UNAVAILABLE)
    await limits.rebuild()
    await eventually(async () =>
      expect(await limits.ledger('wiped-limit', 'rate'), 'no call has used the key since').toMatchObject({ rtot: '3' }),
    )
    await limits.seed('wiped-budget', [], 'seed-2')
    await eventually(async () => expect(Number((await limits.ledger('wiped-budget', 'budget'))['life:Currency:Lifetime:0:s'])).toBe(spent))
    const statuses: number[] = []
    for (let i = 0; i < 5; i += 1) statuses.push((await limits.call(limit)).status)
    expect(statuses).toEqual([200, 200, 429, 429, 429])
  })

  async function eventuallySpent(uid: string): Promise<number> {
    let spent = 0
    await eventually(async () => {
      const budget = await limits.ledger(uid, 'budget')
      spent = Number(budget['life:Currency:Lifetime:0:s'])
      expect([spent > 0, budget['life:Currency:Lifetime:0:H'] ?? '0']).toEqual([true, '0'])
    })
    return spent
  }
})

test('Redis that is restarted empty under load: 503 or the share until the operator has rebuilt the store, and then the limits hold', async () => {
  const [open, mine] = [await closed(), await shared(RPM)]
  const counts = new Map<string, number>()
  const isOver = new AbortController()
  const load = Promise.all(
    [open, mine].map(async (key) => {
      while (!isOver.signal.aborted) {
        const { status } = await limits.call(key)
        const name = `${key === open ? 'closed' : 'shared'} ${status}`
        counts.set(name, (counts.get(name) ?? 0) + 1)
        await sleep(10)
      }
    }),
  )
  await sleep(1_000)
  await limits.redis.stop()
  await sleep(LEASE_MS)
  await limits.redis.start()
  await sleep(1_000)
  expect((await limits.call(open)).status, 'the library is missing').toBe(503)
  await limits.rebuild()
  await until(200, open)
  await sleep(500)
  isOver.abort()
  await load
  expect([...counts.keys()].toSorted()).toEqual(['closed 200', 'closed 503', 'shared 200'])
  await eventually(() => {
    expect(said(/^limits: Redis does not answer; keys with limits are treated as their onStoreUnavailable says$/)).toBeGreaterThan(0)
    expect(said(/^limits: works again/)).toBeGreaterThan(0)
  })
  expect(said(/^limits: /), 'not a line for each call').toBeLessThan(30)
})

test('Redis without the library of the operator: 503, and one log line in ten seconds that names the remedy', async () => {
  const key = await closed()
  await limits.redis.admin.call('FUNCTION', 'FLUSH')
  for (let i = 0; i < 20; i += 1) expectRow(await limits.call(key), 'openai', LIMITS_UNAVAILABLE)
  await limits.rebuild()
  await eventually(() => expect(said(/^limits cannot be checked: .*lacks the functions of Headgate; check that the operator runs/)).toBe(1))
  await until(200, key)
})

function said(pattern: RegExp): number {
  const lines = limits.gateway.process.log().split('\n').filter(Boolean)
  return lines.filter((line) => pattern.test((JSON.parse(line) as { msg: string }).msg)).length
}

test('damage to the ledger of one key, done with the rights of a gateway, makes only that key unavailable', async () => {
  const [damaged, other] = [await closed(), await closed()]
  for (const key of [damaged, other]) expect((await limits.call(key)).status).toBe(200)
  const attacker = limits.redis.connect('gateway')
  const rate = `hg:l:{${damaged.record.uid}}:rate`
  try {
    await attacker.unlink(rate)
    await attacker.sadd(rate, 'no hash')
    await until(503, damaged)
    for (let i = 0; i < 10; i += 1) expect((await limits.call(other)).status).toBe(200)
    await attacker.unlink(rate)
    await attacker.hset(rate, 'rtot', '-5', 'rold', '-1500000000', 'r:1', 'x')
    await until(200, damaged)
  } finally {
    attacker.disconnect()
  }
})

test('a pod that shuts down returns its leases, and ends with everything settled', async () => {
  const key = await limits.issue(`leaving-${count++}`, {
    limits: { requestsPerMinute: RPM, maxConcurrentRequests: 100 },
    budgets: [lifeBudget()],
  })
  const uid = key.record.uid
  let admitted = 0
  const endMs = performance.now() + 2_000
  while (performance.now() < endMs) if ((await limits.call(key)).status === 200) admitted += 1
  expect(Number((await limits.ledger(uid, 'rate'))['rtot']), 'some are leased ahead').toBeGreaterThan(admitted)
  expect((await limits.gateway.stop()).code).toBe(0)
  expect(await limits.ledger(uid, 'rate')).toMatchObject({ rtot: String(admitted) })
  expect(await limits.ledger(uid, 'conc')).toEqual({})
  const { 'life:Currency:Lifetime:0:H': held, 'life:Currency:Lifetime:0:s': spent } = await limits.ledger(uid, 'budget')
  expect([held ?? '0', Number(spent) > 0]).toEqual(['0', true])
  await limits.gateway.start()
})

test('an eviction policy that is set while the pods run is reported in the log and in a metric', async () => {
  await limits.redis.admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
  try {
    await eventually(async () => expect(await limits.gateway.metric('headgate_redis_evicts')).toBe(1), { deadlineMs: 45_000, everyMs: 500 })
    await eventually(() => expect(said(/maxmemory-policy allkeys-lru\); set "maxmemory-policy noeviction" there$/)).toBe(1))
  } finally {
    await limits.redis.admin.config('SET', 'maxmemory-policy', 'noeviction')
  }
})
