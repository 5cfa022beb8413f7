/** The operator's side of budgets, on a real Redis and API server: seeds, checkpoints, restores, statuses, and cleanup. */
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LeaseLedger } from '../../gateway/limits/lease-ledger.ts'
import type { LimitSubject } from '../../gateway/limits/ledger.ts'
import { RedisLedgerStore } from '../../gateway/limits/redis-ledger.ts'
import { systemClock } from '#platform/clock.ts'
import { RedisConnection } from '#platform/redis-connection.ts'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { ledgerKeys, settledSubjects } from '#contract/redis/redis-keys.ts'
import type { LedgerKey } from '../../operator/books/ledger-store.ts'
import { RedisLedgerAdmin } from '../../operator/books/redis-ledger-store.ts'
import { durableSpend, spendSecrets } from '../support/durable-bytes.ts'
import { conditionOf, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { eventsAbout } from '../support/projection-view.ts'
import { type RedisPart, sentBytes } from '../support/redis-part.ts'
import type { Stack } from '../support/stack.ts'
import { eventually } from '../support/wait-for.ts'

const MICROS = 1_000_000
const LIFE = { name: 'life', amount: '25', unit: 'Currency', window: 'Lifetime', onExceeded: 'Block' } as const
const FIELD = 'life:Currency:Lifetime:0'
/** Spend is durable, and lost spend is restored, within 10 s on a quiet machine. */
const SOON = { everyMs: 100 }
/** Maximum bytes of a key that counts as sound. */
const MAX_BYTES = 4_194_304
const LARGE = 'x'.repeat(16 * 1024 * 1024)

const lab = openLab()

describe('the ledger as the operator reads it', () => {
  let redis: RedisPart
  let connection: RedisConnection
  let store: RedisLedgerAdmin
  const { budget } = ledgerKeys('hg', 's')
  const seeded = () => store.seed([{ subject: 's', checkpoints: [[FIELD, 5]] }])
  const read = async () => (await store.read([{ subject: 's', fields: [FIELD] }]))[0]

  beforeAll(async () => {
    redis = await lab.redis()
    const { REDIS_URL: url, REDIS_USERNAME: username, REDIS_PASSWORD: password } = redis.envFor('operator')
    connection = new RedisConnection({ url, username, password }, 'test', { commandMs: 5_000 })
    store = new RedisLedgerAdmin(connection, 'hg')
    await store.prepare()
  })
  afterEach(() => redis.admin.flushall())
  afterAll(() => connection.close())

  it('gets its functions once, and again after Redis has lost them; a newer library stays', async () => {
    expect(await store.prepare()).toBe(0)
    await redis.admin.call('FUNCTION', 'FLUSH')
    await expect(read()).rejects.toThrow('Function not found')
    expect([await store.prepare(), await store.prepare()]).toEqual([1, 0])
    const { code, revision } = ledgerFunctions('hg')
    const newer = code.replace(/revision \d+/, 'revision 999').replace(/REVISION = \d+/, 'REVISION = 999')
    await redis.admin.call('FUNCTION', 'LOAD', 'REPLACE', newer)
    expect(await store.prepare()).toBe(0)
    expect(await redis.admin.fcall(revision, 0)).toBe(999)
    await redis.admin.call('FUNCTION', 'LOAD', 'REPLACE', code)
  })

  it('a library of the former version, which has no revision function, is replaced', async () => {
    const { code, revision } = ledgerFunctions('hg')
    const before = code.replace(/^.*_revision'.*$/m, '').replace(/-- headgate revision \d+/, '-- headgate revision 1')
    await redis.admin.call('FUNCTION', 'LOAD', 'REPLACE', before)
    expect(await store.prepare()).toBe(1)
    expect(Number(await redis.admin.fcall(revision, 0))).toBeGreaterThan(1)
  })

  it('starts from its checkpoints once, and again with less spend than a checkpoint, and never lowers its spend', async () => {
    expect([await seeded(), await seeded()]).toEqual([['planted'], ['present']])
    expect(await read()).toEqual({ state: 'seeded', windows: [{ spent: 5, unsettled: 0, held: 0 }] })
    const seed = await redis.admin.hget(budget, 'seed')
    expect(await store.seed([{ subject: 's', checkpoints: [[FIELD, 4]] }])).toEqual(['present'])
    expect(await redis.admin.hget(budget, 'seed')).toBe(seed)
    await redis.admin.hset(budget, { [`${FIELD}:c:p1`]: '5', [`${FIELD}:h:p1`]: '2', [`${FIELD}:H`]: '2' })
    expect(await store.seed([{ subject: 's', checkpoints: [[FIELD, 9]] }])).toEqual(['planted'])
    expect(await read()).toEqual({ state: 'seeded', windows: [{ spent: 9, unsettled: 0, held: 2 }] })
    expect(await redis.admin.hgetall(budget)).toMatchObject({ [`${FIELD}:B`]: '9', [`${FIELD}:h:p1`]: '2' })
    expect([await redis.admin.hget(budget, 'seed'), await redis.admin.hexists(budget, `${FIELD}:c:p1`)]).toEqual([
      expect.not.stringMatching(seed ?? ''),
      0,
    ])
  })

  it.each([
    ['a spend that is not an integer', { [`${FIELD}:s`]: '1e9' }],
    ['a negative spend', { [`${FIELD}:s`]: '-5' }],
    ['a negative sum of holds', { [`${FIELD}:H`]: '-9000000' }],
    ['a value of megabytes', { [`${FIELD}:u`]: LARGE }],
    ['a seed of megabytes', { seed: LARGE }],
  ])('%s reads as damage, without the bytes of the value', async (_, fields) => {
    await seeded()
    await redis.admin.hset(budget, fields)
    const before = await sentBytes(redis)
    expect(await read()).toEqual({ state: 'damaged' })
    expect((await sentBytes(redis)) - before).toBeLessThan(LARGE.length / 8)
  })

  it('a key of another type or with too many fields damages only its subject, and a drop and a seed repair the subject', async () => {
    await store.seed([{ subject: 'other', checkpoints: [] }])
    await redis.admin.set(budget, 'x')
    expect((await store.survey(['s', 'other'])).map(({ state }) => state)).toEqual(['damaged', 'seeded'])
    expect(await seeded()).toEqual(['damaged'])
    await store.dropBudgets(['s'])
    expect(await seeded()).toEqual(['planted'])
    for (let at = 0; at < 20; at += 1)
      await redis.admin.hset(
        budget,
        Object.fromEntries(Array.from({ length: 1_000 }, (_unused, index) => [`${FIELD}:c:${at}-${index}`, '1'])),
      )
    expect((await store.survey(['s']))[0]?.state).toBe('damaged')
    const found = new Map<string, boolean>()
    for await (const keys of store.walk(MAX_BYTES)) for (const { name, isDamaged } of keys) found.set(name, isDamaged)
    expect(found.get(budget), 'a hash of 20,000 fields').toBe(true)
  })

  it('a walk returns each key once, also keys of no subject; a name of megabytes is deleted and never leaves Redis', async () => {
    const subjects = Array.from({ length: 1_000 }, (_, at) => ({ subject: `s${at}`, checkpoints: [] }))
    await store.seed(subjects)
    await redis.admin.sadd(settledSubjects('hg'), 's1')
    await redis.admin.set(`hg:l:{s1}:${LARGE}`, 'x')
    await redis.admin.mset('hg:l:odd', 'x', 'hg:{proj}:odd', 'x', 'hg:l:{s1}:conc', 'x')
    await redis.admin.hset(ledgerKeys('hg', 's2').rate, { rtot: LARGE })
    const found: LedgerKey[] = []
    for await (const keys of store.walk(MAX_BYTES)) found.push(...keys)
    const damaged = found.filter(({ isDamaged }) => isDamaged).map(({ name }) => name)
    expect([new Set(found.map(({ name }) => name)).size, damaged.toSorted()]).toEqual([
      1_004,
      ['hg:l:odd', 'hg:l:{s1}:conc', 'hg:l:{s2}:rate'],
    ])
    expect(
      found
        .filter(({ subject }) => subject === undefined)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(['hg:l:odd', 'hg:l:settled'])
    expect(await redis.admin.exists(`hg:l:{s1}:${LARGE}`)).toBe(0)
  })

  it('names the processes that hold and that have spent; the holds of a dead process become unsettled spend', async () => {
    await seeded()
    await redis.admin.hset(budget, { [`${FIELD}:h:pod/p:1`]: '7', [`${FIELD}:H`]: '7', [`${FIELD}:c:p2`]: '3' })
    expect(await store.survey(['s'])).toEqual([{ state: 'seeded', windows: [FIELD], holders: ['pod/p:1'], spenders: ['p2'] }])
    await store.reap('pod/p:1', ['s', 'unknown'])
    await store.bury('p2', ['s'])
    expect(await read()).toEqual({ state: 'seeded', windows: [{ spent: 5, unsettled: 7, held: 0 }] })
    expect((await store.survey(['s']))[0]).toMatchObject({ holders: [], spenders: [] })
  })

  it('W5 a process that returns after the operator has forgotten it is not charged twice', async () => {
    await seeded()
    const gateway = new RedisLedgerStore(redis.admin, 'hg')
    const spent = { field: FIELD, seed: 'seed-1', held: 0, spent: 500, acknowledged: 0, base: 0, seen: 0 }
    const none = { live: 1, batch: undefined, permits: undefined, rates: [], budgets: [], balance: undefined }
    const call = {
      subject: 's',
      process: 'p1',
      number: 1,
      acknowledged: 0,
      earliestMs: 0,
      latestMs: Number.MAX_SAFE_INTEGER,
      wasAway: false,
      reports: [spent],
      ...none,
    }
    await gateway.call(call)
    const before = await read()
    await store.bury('p1', ['s'])
    const again = { ...spent, spent: 510, acknowledged: 500 }
    await gateway.call({ ...call, number: 2, acknowledged: 1, wasAway: true, reports: [again] })
    expect(before).toEqual({ state: 'seeded', windows: [{ spent: 505, unsettled: 0, held: 0 }] })
    expect(await read()).toEqual({ state: 'seeded', windows: [{ spent: 515, unsettled: 0, held: 0 }] })
  })

  it('returns each settled subject once, in bounded steps, and deletes a value that is not a set', async () => {
    await redis.admin.sadd(settledSubjects('hg'), ...Array.from({ length: 30 }, (_, at) => `s${at}`))
    const first = await store.settled(20)
    const second = await store.settled(20)
    expect([first.length, second.length, new Set([...first, ...second]).size]).toEqual([20, 10, 30])
    await redis.admin.sadd(settledSubjects('hg'), 'short', LARGE)
    expect([await store.settled(20), await redis.admin.exists(settledSubjects('hg'))]).toEqual([['short'], 0])
    await redis.admin.set(settledSubjects('hg'), 'x')
    expect(await store.settled(20)).toEqual([])
    expect(await redis.admin.exists(settledSubjects('hg'))).toBe(0)
  })
})

describe('a Headgate whose gateways count in Redis', () => {
  let stack: Stack
  let clients: Redis[] = []
  const ledgers: LeaseLedger[] = []

  beforeAll(async () => {
    stack = await lab.stack({ gateways: 0 })
  })
  afterAll(async () => {
    for (const ledger of ledgers) await ledger.close(1_000)
    for (const client of clients) client.disconnect()
    clients = []
  })

  function gatewayProcess(name: string): LeaseLedger {
    const client = stack.redis.connect('admin')
    clients.push(client)
    const store = new RedisLedgerStore(client, 'hg')
    const ledger = new LeaseLedger({ store, clock: systemClock, process: name, live: () => 1 })
    ledgers.push(ledger)
    return ledger
  }

  async function keyWith(name: string, budgets: readonly unknown[] = [LIFE]): Promise<LimitSubject> {
    await stack.apply('ApiKey', name, { budgets })
    const { metadata } = await stack.untilCondition('ApiKey', name, 'SecretIssued')
    const budget = {
      name: 'life',
      unit: 'Currency',
      window: 'Lifetime',
      timeZone: 'UTC',
      amount: 25 * MICROS,
      onExceeded: 'Block',
    } as const
    return { uid: metadata.uid ?? '', whose: 'key', limits: {}, budgets: [budget], onStoreUnavailable: 'FailClosed' }
  }

  async function spend(ledger: LeaseLedger, subject: LimitSubject, micros: number): Promise<void> {
    const hold = await eventualValue(async () => {
      const verdict = await ledger.reserve([subject], { tokens: 0, holdByUnit: { Currency: micros, Tokens: 0 } })
      expect(verdict.outcome).toBe('held')
      return verdict
    })
    if (hold.outcome === 'held') ledger.settle(hold, { inputTokens: 1, outputTokens: 1, costMicros: micros })
    await stack.redis.admin.sadd(settledSubjects('hg'), subject.uid)
  }

  const spentInRedis = async ({ uid }: LimitSubject): Promise<number> =>
    Number(await stack.redis.admin.hget(ledgerKeys('hg', uid).budget, `${FIELD}:s`))
  const apiKey = async (name: string): Promise<TestObject> => (await stack.kube.get(stack.path('ApiKey', name)))!
  const durable = async (uid: string): Promise<number | undefined> => (await durableSpend(stack)).get(uid)?.spent.get(FIELD)

  it('shows the spend of a key, stores the spend durably, and reports an exhausted budget at once', async () => {
    const bot = await keyWith('bot')
    const ledger = gatewayProcess('p-bot')
    await spend(ledger, bot, 5 * MICROS)
    await eventually(async () => expect((await apiKey('bot')).status.usage).toMatchObject([{ used: '5.00', percent: 20 }]), SOON)
    await eventually(async () => expect(await spendSecrets(stack)).toHaveLength(1), SOON)
    expect((await apiKey('bot')).status.lastUsedTime).toMatch(/:00:00Z$/)
    await spend(ledger, bot, 20 * MICROS)
    await stack.untilCondition('ApiKey', 'bot', 'BudgetExhausted')
    const verdict = await ledger.reserve([bot], { tokens: 0, holdByUnit: { Currency: 1, Tokens: 0 } })
    expect(verdict).toMatchObject({ outcome: 'refused', limit: 'budgetSpent' })
  })

  it('writes nothing when the operator restarts, and the budgets continue from their spend', async () => {
    const quiet = await keyWith('quiet')
    const ledger = gatewayProcess('p-quiet')
    await spend(ledger, quiet, 2 * MICROS)
    await eventually(async () => expect((await apiKey('quiet')).status.usage).toMatchObject([{ percent: 8 }]), SOON)
    await eventually(async () => expect(await durable(quiet.uid)).toBe(2 * MICROS), SOON)
    const versions = async (): Promise<unknown> => {
      const keys = await stack.list('ApiKey')
      return [...keys, ...(await spendSecrets(stack))].map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).toSorted()
    }
    const before = await untilStill(versions)
    await stack.operator.restart()
    await eventually(async () => {
      const reads = await stack.operator.metric('headgate_operator_ledger_reads_total')
      expect(reads, 'every budget was read several times').toBeGreaterThan(5)
    }, SOON)
    expect(await versions()).toEqual(before)
    await spend(ledger, quiet, MICROS)
    await eventually(async () => expect(await durable(quiet.uid)).toBe(3 * MICROS), SOON)
  })

  it('continues from the last checkpoint after Redis was emptied, and names the time in a condition and an Event', async () => {
    const lost = await keyWith('lost')
    const ledger = gatewayProcess('p-lost')
    await spend(ledger, lost, 20 * MICROS)
    await eventually(async () => expect((await apiKey('lost')).status.usage).toMatchObject([{ percent: 80 }]), SOON)
    await eventually(async () => expect(await durable(lost.uid)).toBe(20 * MICROS), SOON)
    await stack.redis.admin.flushall()
    await eventually(async () => expect(await spentInRedis(lost)).toBe(20 * MICROS), SOON)
    const key = await stack.untilCondition('ApiKey', 'lost', 'LimitsEnforceable', { status: 'False', reason: 'SpendUncertain' })
    expect(conditionOf(key, 'LimitsEnforceable')?.message).toMatch(/between 20\d\d-.*Z and 20\d\d-.*Z/)
    await eventually(async () => {
      expect((await eventsAbout(stack, 'lost')).filter(({ reason }) => reason === 'SpendUncertain')).toHaveLength(1)
    })
    const later = gatewayProcess('p-later')
    await spend(later, lost, 4 * MICROS)
    await eventually(async () => expect(await spentInRedis(lost), 'nothing counts twice').toBe(24 * MICROS), SOON)
  })

  it('restores a forged spend, even if the forged value is not a number', async () => {
    const forged = await keyWith('forged')
    await spend(gatewayProcess('p-forged'), forged, 15 * MICROS)
    await eventually(async () => expect(await durable(forged.uid)).toBe(15 * MICROS), SOON)
    for (const value of ['0', '-1000000000', 'nothing']) {
      await stack.redis.admin.hset(ledgerKeys('hg', forged.uid).budget, `${FIELD}:s`, value)
      await eventually(async () => expect(await spentInRedis(forged), value).toBe(15 * MICROS), SOON)
    }
    await stack.untilCondition('ApiKey', 'forged', 'LimitsEnforceable', { status: 'False', reason: 'SpendUncertain' })
    expect(await stack.operator.metric('headgate_operator_ledger_restores_total')).toBeGreaterThanOrEqual(3)
  })

  it('does not make a forged spend durable that calls cannot have caused; under another name the budget works again', async () => {
    const forged = await keyWith('forged-high')
    await spend(gatewayProcess('p-forged-high'), forged, 15 * MICROS)
    await eventually(async () => expect(await durable(forged.uid)).toBe(15 * MICROS), SOON)
    await stack.redis.admin.hset(ledgerKeys('hg', forged.uid).budget, `${FIELD}:s`, '9000000000000000')
    await stack.untilCondition('ApiKey', 'forged-high', 'LimitsEnforceable', { status: 'False', reason: 'SpendHeldBack' })
    await eventually(async () => {
      expect((await eventsAbout(stack, 'forged-high')).filter(({ reason }) => reason === 'SpendHeldBack')).toHaveLength(1)
    })
    expect(await durable(forged.uid)).toBe(15 * MICROS)
    await stack.apply('ApiKey', 'forged-high', { budgets: [{ ...LIFE, name: 'life-2', amount: '10' }] })
    await stack.untilCondition('ApiKey', 'forged-high', 'LimitsEnforceable', { reason: 'Enforceable' })
    const renamed: LimitSubject = {
      ...forged,
      budgets: forged.budgets.map((budget) => ({ ...budget, name: 'life-2', amount: 10 * MICROS })),
    }
    await spend(gatewayProcess('p-renamed'), renamed, MICROS)
    await eventually(async () => expect((await apiKey('forged-high')).status.usage).toMatchObject([{ used: '1.00', percent: 10 }]), SOON)
  })

  it('removes keys that fill Redis within seconds; meanwhile suspensions are written, and a key with a budget then works again', async () => {
    const { admin } = stack.redis
    const bot = await keyWith('amid-junk')
    await spend(gatewayProcess('p-amid-junk'), bot, MICROS)
    const gateway = stack.redis.connect('gateway')
    clients.push(gateway)
    const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
    await admin.config('SET', 'maxmemory', String(used + 32 * 2 ** 20))
    try {
      await fill(gateway, bot.uid)
      await stack.setState('amid-junk', 'Suspended')
      await stack.untilCondition('ApiKey', 'amid-junk', 'Suspended')
      await eventually(async () => expect(await admin.keys('hg:l:*:junk*')).toEqual([]), SOON)
      await stack.setState('amid-junk', 'Active')
      await spend(gatewayProcess('p-after-junk'), bot, MICROS)
    } finally {
      await admin.config('SET', 'maxmemory', '0')
    }
  })

  /** Stores junk with the rights of a gateway, until Redis refuses more. */
  async function fill(gateway: Redis, uid: string): Promise<void> {
    for (const bytes of [2 ** 20, 10_000, 100]) {
      for (let at = 0; ; at += 1) {
        const error = await gateway.hset(`hg:l:{${uid}}:junk-${bytes}-${at}`, 'x', 'x'.repeat(bytes)).then(() => undefined, String)
        if (error === undefined) continue
        expect(error).toContain('OOM')
        break
      }
    }
  }

  it('leaves no data of keys that are repeatedly created, used and deleted', async () => {
    const keysOf = async (uid: string): Promise<string[]> => await stack.redis.admin.keys(`hg:l:{${uid}}:*`)
    const uids: string[] = []
    for (let round = 0; round < 3; round += 1) {
      const deleted = await keyWith('deleted')
      uids.push(deleted.uid)
      await spend(gatewayProcess(`p-deleted-${round}`), deleted, MICROS)
      await eventually(async () => expect((await keysOf(deleted.uid)).length).toBeGreaterThan(1), SOON)
      await stack.kube.remove(stack.path('ApiKey', 'deleted'))
      await eventually(async () => expect(await keysOf(deleted.uid)).toEqual([]), SOON)
    }
    await eventually(async () => {
      for (const uid of uids) expect(await durable(uid)).toBeUndefined()
    }, SOON)
  })
})

/** Waits until all reads of 8 s are equal. No write waits for so long. */
async function untilStill<T>(look: () => Promise<T>): Promise<T> {
  let last: unknown
  let sinceMs = performance.now()
  return await eventualValue(async () => {
    const seen = await look()
    if (JSON.stringify(seen) !== JSON.stringify(last)) sinceMs = performance.now()
    last = seen
    expect(performance.now() - sinceMs).toBeGreaterThan(8_000)
    return seen
  })
}

async function eventualValue<T>(check: () => Promise<T>): Promise<T> {
  let result: { readonly value: T } | undefined
  await eventually(async () => void (result = { value: await check() }), SOON)
  if (result === undefined) throw new Error('never')
  return result.value
}
