/** Limits and budgets of gateway processes that count in a real Redis, as clients see them: rows, headers, and the remaining amounts. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { type Answer, callHeaders, type ExpectedRow, expectRow, type Question, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { LimitedAnswers, lifeBudget, PRICED } from '../support/limited-answers.ts'
import type { IssuedKey } from '../support/records.ts'
import { LIMITS, NO_PRICE, SPENT, TOO_MANY_TOKENS } from '../support/rows.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/** Words in a message that make clients stop for good. */
const STOP_WORDS = /quota|billing|credit balance|will reset at/

const lab = openLab()
let limits: LimitedAnswers
let count = 0

beforeAll(async () => {
  limits = await LimitedAnswers.open(lab, 'limits', { gateways: 2, env: { TZ: 'Asia/Kathmandu' } })
})
afterAll(() => limits.close())

const issue = (change: Partial<KeyRecord>): Promise<IssuedKey> => limits.issue(`key-${count++}`, change)

function expectWait(answer: Answer, format: WireFormat, row: ExpectedRow): number {
  const seconds = Number(answer.headers.get('retry-after'))
  const message = expectRow(answer, format, { ...row, isFinal: false, retryAfter: seconds })
  const ms = Number(answer.headers.get('retry-after-ms'))
  expect(seconds).toBe(Math.ceil(ms / 1_000))
  expect([ms > 0, ms <= 60_000]).toEqual([true, true])
  expect(Number(/Please try again in ([\d.]+)s\.$/.exec(message)?.[1])).toBeGreaterThanOrEqual(ms / 1_000 - 0.1)
  expect(message).not.toMatch(STOP_WORDS)
  return ms
}

interface Shown {
  readonly limit: number
  readonly remaining: number
  /** ms from now. */
  readonly reset: number
}

function headersOf(answer: Answer, format: WireFormat, kind: 'requests' | 'tokens'): Shown | undefined {
  const field = (name: string): string =>
    answer.headers.get(format === 'openai' ? `x-ratelimit-${name}-${kind}` : `anthropic-ratelimit-${kind}-${name}`) ?? ''
  const [limit, left, reset] = [field('limit'), field('remaining'), field('reset')]
  if (limit === '' && left === '' && reset === '') return undefined
  return { limit: Number(limit), remaining: Number(left), reset: format === 'openai' ? goMs(reset) : Date.parse(reset) - Date.now() }
}

function goMs(duration: string): number {
  const [, minutes = 0, seconds = 0, ms = 0] = /^(?:(\d+)m)?(?:([\d.]+)s)?(?:(\d+)ms)?$/.exec(duration) ?? []
  return Number(minutes) * 60_000 + Number(seconds) * 1_000 + Number(ms)
}

async function remaining(key: IssuedKey, kind: string): Promise<number | undefined> {
  return (await limits.view(key)).limits.find(({ limit }) => limit === kind)?.left
}

const slow = (ms: number): Question => ({ headers: { 'x-session-id': `stub:delay=${ms}` } })
const stream = { fields: { stream: true } }

describe.each(WIRE_FORMATS)('on %s routes', (format) => {
  test.each([
    ['plain', {}],
    ['streamed', stream],
  ])(
    'L9 requests per minute: %s answers and the refusal carry the limit, the remaining requests and the time of the reset',
    async (_, how) => {
      const key = await issue({ limits: { requestsPerMinute: 2 } })
      const answers: Answer[] = []
      for (let i = 0; i < 3; i += 1) answers.push(await limits.call(key, { format, ...how }))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
      const shown = answers.map((answer) => headersOf(answer, format, 'requests'))
      expect(shown.map((one) => [one?.limit, one?.remaining])).toEqual([
        [2, 1],
        [2, 0],
        [2, 0],
      ])
      for (const one of shown) expect([(one?.reset ?? 0) > 45_000, (one?.reset ?? 0) < 65_000]).toEqual([true, true])
      expect(answers.map((answer) => headersOf(answer, format, 'tokens'))).toEqual([undefined, undefined, undefined])
      expect(expectWait(answers[2] as Answer, format, LIMITS.requests)).toBeGreaterThan(45_000)
    },
  )

  test('L9 tokens per minute: a call holds the tokens that it declares, and a refusal names the wait after which the call would pass', async () => {
    const key = await issue({ limits: { tokensPerMinute: 1_000 } })
    const running = limits.call(key, { format, ...slow(1_500), fields: { max_tokens: 900 } })
    await eventually(async () => expect(Number((await limits.ledger(key.record.uid, 'rate'))['ttot'])).toBeGreaterThan(900))
    const refused = await limits.call(key, { format, fields: { max_tokens: 900 } })
    expectWait(refused, format, LIMITS.tokens)
    expect(headersOf(refused, format, 'tokens')?.limit).toBe(1_000)
    expect((await running).status).toBe(200)
    await eventually(async () => expect(await remaining(key, 'tokens_per_minute')).toBeGreaterThan(900))
    expect((await limits.call(key, { format, fields: { max_tokens: 900 } })).status).toBe(200)
  })

  test('L3 a request larger than the whole limit is refused for good, and a limit of 50 tokens is usable', async () => {
    const key = await issue({ limits: { tokensPerMinute: 50 } })
    const large = { messages: [{ role: 'user', content: 'word '.repeat(1_000) }] }
    const refused = await limits.call(key, { format, fields: large })
    expectRow(refused, format, TOO_MANY_TOKENS)
    expect((await limits.call(key, { format, fields: { max_tokens: 30_000 } })).status).toBe(200)
  })

  test('concurrency: one call more than allowed is refused with a wait of five seconds, and passes when another call has ended', async () => {
    const key = await issue({ limits: { maxConcurrentRequests: 2 } })
    const running = [1, 2].map(() => limits.call(key, { format, ...slow(1_500) }))
    await eventually(async () => expect(await limits.permits(key)).toBe(2))
    expect(expectWait(await limits.call(key, { format }), format, LIMITS.concurrency)).toBe(5_000)
    expect(await Promise.all(running)).toMatchObject([{ status: 200 }, { status: 200 }])
    expect((await limits.call(key, { format })).status).toBe(200)
  })

  test('a budget that is spent refuses for good, and names the budget', async () => {
    const budget = lifeBudget({ amount: 100 })
    const spent = await limits.issue(`spent-${format}`, { budgets: [budget] }, [[budget, 100]])
    const refused = await limits.call(spent, { format })
    expect(expectRow(refused, format, SPENT)).toMatch(/this budget never resets; its amount must be raised$/)
    expect(headersOf(refused, format, 'requests')).toBeUndefined()
  })

  test('a budget that is held by running calls refuses with a wait of five seconds', async () => {
    const key = await issue({ budgets: [lifeBudget({ amount: 2_000 })] })
    const running = limits.call(key, { format, ...slow(1_500), fields: { max_tokens: 1_500 } })
    await eventually(async () =>
      expect(Number((await limits.ledger(key.record.uid, 'budget'))['life:Currency:Lifetime:0:H'])).toBeGreaterThan(1_500),
    )
    const waitMs = expectWait(await limits.call(key, { format, fields: { max_tokens: 1_500 } }), format, LIMITS.held)
    expect(Math.ceil(waitMs / 1_000)).toBe(5) // counted from the answer of Redis, which may be some ms old
    expect((await running).status).toBe(200)
    await eventually(async () => expect((await limits.call(key, { format, fields: { max_tokens: 1_500 } })).status).toBe(200))
  })

  test('L10 a budget of money refuses a model without a price; the price 0 and budgets of tokens pass', async () => {
    const money = await issue({ budgets: [lifeBudget()] })
    expectRow(await limits.call(money, { format, model: 'unpriced' }), format, NO_PRICE)
    expect((await limits.call(money, { format, model: 'free' })).status).toBe(200)
    const tokens = await issue({ budgets: [lifeBudget({ unit: 'Tokens' })] })
    expect((await limits.call(tokens, { format, model: 'unpriced' })).status).toBe(200)
  })
})

test('L7 the reset of Anthropic routes is a time in UTC, whatever the time zone of the pod', async () => {
  const key = await issue({ limits: { requestsPerMinute: 5 } })
  const { headers } = await limits.call(key, { format: 'anthropic' })
  expect(headers.get('anthropic-ratelimit-requests-reset')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
})

test('L8 a refusal of any kind consumes nothing of any limit', async () => {
  const budget = lifeBudget({ amount: 10_000 })
  const key = await issue({ limits: { requestsPerMinute: 50, tokensPerMinute: 5_000, maxConcurrentRequests: 1 }, budgets: [budget] })
  const running = limits.call(key, { ...slow(3_000), fields: { max_tokens: 50 } })
  await eventually(async () => expect(await limits.permits(key)).toBe(1))
  const refusals: readonly [number, Question][] = [
    [400, { body: '{' }],
    [403, { model: 'priced', headers: { authorization: `Bearer ${(await issue({ models: [['other']] })).credential}` } }],
    [404, { model: 'no-such-model' }],
    [429, {}],
    [429, { fields: { max_tokens: 4_990 } }],
    [400, { fields: { messages: [{ role: 'user', content: 'word '.repeat(50_000) }] } }],
    [402, { model: 'unpriced' }],
    [429, { fields: { max_tokens: 6_000 } }],
  ]
  for (const [status, question] of refusals)
    expect((await limits.call(key, question)).status, JSON.stringify(question).slice(0, 80)).toBe(status)
  const answer = await running
  expect(answer.status).toBe(200)
  const { total_tokens: used } = (JSON.parse(answer.text) as { usage: { total_tokens: number } }).usage
  await eventually(
    async () => {
      const { limits: shown, budgets } = await limits.view(key)
      expect(shown.map(({ left: rest }) => rest)).toEqual([49, 5_000 - used, 1])
      expect(budgets).toMatchObject([{ used: (used / 1_000_000).toFixed(6), held: '0.00' }])
    },
    { everyMs: 500 },
  )
})

describe('the hold of a call', () => {
  const ALL = {
    limits: { requestsPerMinute: 100, tokensPerMinute: 5_000, maxConcurrentRequests: 3 },
    budgets: [lifeBudget({ amount: 50_000 })],
  }

  test.each<[string, string, number]>([
    ['a 400 of the backend', 'stub:status=400', 400],
    ['a 500 of the backend', 'stub:status=500', 502],
    ['a cut connection', 'stub:cut=0', 502],
  ])('L5 is returned after %s: only the request is charged', async (_, directive, status) => {
    const key = await issue(ALL)
    const answer = await limits.call(key, { headers: { 'x-session-id': directive }, fields: { max_tokens: 1_000, stream: true } })
    expect(answer.status).toBe(status)
    await expectAtRest(key, { requests: 99, tokens: 5_000 })
  })

  test('L5 is returned after the client disconnects, and the produced output is charged', async () => {
    const key = await issue(ALL)
    const leaving = new AbortController()
    const answer = await fetch(`${limits.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...callHeaders(key.credential), 'x-session-id': 'stub:words=1000,gap=50' },
      body: JSON.stringify({ model: PRICED, messages: [{ role: 'user', content: 'hi' }], stream: true, max_tokens: 2_000 }),
      signal: leaving.signal,
    })
    const reader = answer.body?.getReader()
    for (let pieces = 0; pieces < 5; pieces += 1) expect((await reader?.read())?.done).toBe(false)
    expect(await limits.permits(key)).toBe(1)
    leaving.abort()
    await eventually(async () => expect(await limits.permits(key)).toBe(0))
    await eventually(async () => expect((await limits.view(key)).budgets[0]).toMatchObject({ held: '0.00' }), { everyMs: 500 })
    expect(Number((await limits.view(key)).budgets[0]?.used)).toBeGreaterThan(0)
  })

  test('L6 two attempts of a client are charged twice; a second try of the gateway is not', async () => {
    const key = await issue(ALL)
    const fields = { max_tokens: 10, messages: [{ role: 'user', content: 'Say something.' }] }
    expect(
      (await limits.call(key, { fields: { ...fields, stream: true }, headers: { 'x-session-id': 'stub:words=8,cut=4' } })).text,
    ).toContain('error')
    expect((await limits.call(key, { fields, headers: { 'x-session-id': 'stub:words=8' } })).status).toBe(200)
    await eventually(async () => expect(await remaining(key, 'requests_per_minute')).toBe(98), { everyMs: 500 })
    const reached = limits.reached
    expect((await limits.call(key, { fields, model: 'twice' })).status).toBe(200)
    expect(limits.reached - reached, 'the first endpoint is dead').toBe(1)
    await eventually(async () => expect(await remaining(key, 'requests_per_minute')).toBe(97), { everyMs: 500 })
  })

  async function expectAtRest(key: IssuedKey, left: { readonly requests: number; readonly tokens: number }): Promise<void> {
    await eventually(
      async () => {
        const { limits: shown, budgets } = await limits.view(key)
        expect(shown.map(({ limit, left: rest }) => [limit, rest])).toEqual([
          ['requests_per_minute', left.requests],
          ['tokens_per_minute', left.tokens],
          ['concurrent_requests', 3],
        ])
        expect(budgets).toMatchObject([{ used: '0.00', held: '0.00', left: '0.05' }])
      },
      { everyMs: 500 },
    )
  }
})

describe('pods', () => {
  test('share one limit, whichever pod answers', async () => {
    const key = await issue({ limits: { requestsPerMinute: 10 } })
    const statuses: number[] = []
    for (let i = 0; i < 16; i += 1) statuses.push((await limits.call(key, {}, limits.gateways[i % 2])).status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
  })

  test('apply a raised limit at once, and a lowered limit too', async () => {
    const key = await issue({ limits: { requestsPerMinute: 2 } })
    for (const status of [200, 200, 429]) expect((await limits.call(key)).status).toBe(status)
    await limits.write(key, { limits: { requestsPerMinute: 4 } })
    for (const status of [200, 200, 429]) expect((await limits.call(key)).status).toBe(status)
    await limits.write(key, { limits: { requestsPerMinute: 3 } })
    expect((await limits.call(key)).status).toBe(429)
  })

  test('name the subjects that have spent of a budget, for the checkpoints of the operator', async () => {
    const key = await issue({ budgets: [lifeBudget()] })
    await limits.call(key)
    await waitFor('the name', async () => (await limits.redis.admin.smembers('hg:l:settled')).includes(key.record.uid))
  })

  test('hold under the name of their heartbeats, so that the operator finds the holds of a dead pod', async () => {
    const key = await issue({ limits: { maxConcurrentRequests: 2 }, budgets: [lifeBudget()] })
    const running = limits.call(key, slow(1_000))
    const alive = (await limits.redis.admin.zrange('hg:{proj}:pods', '0', '-1')).map((name) => name.split('/')[1])
    await eventually(async () => {
      const fields = Object.keys({ ...(await limits.ledger(key.record.uid, 'conc')), ...(await limits.ledger(key.record.uid, 'budget')) })
      const holders = fields.flatMap((field) => /^n:(.+)|:h:(.+)$/.exec(field)?.slice(1).filter(Boolean) ?? [])
      expect(holders.length).toBeGreaterThan(1)
      for (const holder of holders) expect(alive).toContain(holder)
    })
    expect((await running).status).toBe(200)
  })

  test('say in their heartbeats that they count limits, and know the number of live pods', async () => {
    const acks = await limits.redis.admin.hvals('hg:{proj}:acks')
    expect(acks.map((text) => (JSON.parse(text) as { features: string[] }).features)).toEqual([
      ['limits', 'accounts', 'proofs', 'balances'],
      ['limits', 'accounts', 'proofs', 'balances'],
    ])
    await eventually(async () => expect(await limits.gateway.metric('headgate_limit_live_pods')).toBe(2))
  })
})

test('a busy key costs Redis less than one call per five requests', async () => {
  const key = await issue({ limits: { requestsPerMinute: 100_000, tokensPerMinute: 100_000_000 } })
  const calls = async (): Promise<number> => (await limits.gateway.metric('headgate_limit_store_calls_total{outcome="answered"}')) ?? 0
  const client = async (): Promise<void> => {
    for (let i = 0; i < 50; i += 1) expect((await limits.call(key)).status).toBe(200)
  }
  await client()
  const before = await calls()
  await Promise.all(Array.from({ length: 8 }, client))
  expect((await calls()) - before).toBeLessThan(80)
})

test('20 refusals within 10 s end the reading of bodies, and the metrics count every refusal', async () => {
  const key = await issue({ limits: { requestsPerMinute: 1 } })
  const before = (await limits.gateway.metric('headgate_limit_decisions_total{outcome="refused",limit="requests"}')) ?? 0
  expect((await limits.call(key)).status).toBe(200)
  for (let i = 0; i < 30; i += 1) expect((await limits.call(key)).status).toBe(429)
  expect((await limits.call(key, { body: 'no JSON at all' })).status, 'the gateway has not read the body').toBe(429)
  expect(await limits.gateway.metric('headgate_limit_decisions_total{outcome="refused",limit="requests"}')).toBe(before + 31)
  const metrics = lab.record(await limits.gateway.metrics())
  expect(metrics).toMatch(/headgate_limit_store_calls_total\{outcome="answered"\} [1-9]/)
  expect(metrics).not.toContain(key.record.uid)
})
