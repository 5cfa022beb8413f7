/**
 * Failures of limits that other gateways have had and that show only over HTTP: at real gateway processes and a real Redis, by the number of
 * their issue. Those of the ledger alone are in `gateway/limits/known-failures.test.ts`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DIALECTS } from '../../gateway/dialects/dialects.ts'
import { ROUTES } from '../../gateway/routes/route-table.ts'
import type { CallRoute } from '#contract/values/call-routes.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { longestLeaseMs } from '#contract/ledger/ledger-layout.ts'
import { apiKeySpec } from '#api/apikey.ts'
import { type Answer, type ExpectedRow, expectRow, type Question, WIRE_FORMATS, type WireFormat } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { type LimitedCallOptions, LimitsLab } from '../support/limit-processes.ts'
import { IMPATIENT, LimitedAnswers, lifeBudget, PRICED, UNREPORTED } from '../support/limited-answers.ts'
import type { IssuedKey } from '../support/records.ts'
import type { Program } from '../support/program.ts'
import type { RedisPart } from '../support/redis-part.ts'
import { LIMITS as LIMITS_ROWS, LIMITS_UNAVAILABLE, SPENT } from '../support/rows.ts'
import { fieldsOf, formatOf, reportedTokens, routeRequest, STREAMED_ROUTES } from '../support/route-calls.ts'
import { freePort } from '../support/free-port.ts'
import { TEST_CA, TEST_SERVER_CERT, TEST_SERVER_KEY } from '../support/tls-fixture.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
let limits: LimitedAnswers
let count = 0

beforeAll(async () => {
  await beginScaled()
  limits = await LimitedAnswers.open(lab, 'known-failures', { gateways: 2 })
})
afterAll(async () => {
  await endScaled()
  await limits.close()
})

const issue = (change: Partial<KeyRecord>, spent: Parameters<LimitedAnswers['issue']>[2] = []): Promise<IssuedKey> =>
  limits.issue(`key-${count++}`, change, spent)

/** A call with directives for the stub model: `examples/stub-model/stub-directives.ts`. */
const directed = (directives: string): Question => ({ headers: { 'x-session-id': `stub:${directives}` } })
const stream = (isStream: boolean): Question => (isStream ? { fields: { stream: true } } : {})

describe('#34728, kuadrant-operator#1864: every route for model calls, plain and streamed,', () => {
  interface Way {
    readonly path: string
    readonly route: CallRoute
    readonly stream: boolean
  }
  const pathsOf = (isCharged: boolean): Array<Pick<Way, 'path' | 'route'>> =>
    [...DIALECTS.values()]
      .filter((dialect) => dialect.isCharged === isCharged)
      .flatMap(({ route, path, otherPaths = [] }) => [path, ...otherPaths].map((one) => ({ path: one, route })))
  /** The count of tokens costs nothing. Its tests are in `call-money.test.ts`. */
  const FREE = pathsOf(false)
  const WAYS: readonly Way[] = pathsOf(true).flatMap((one) => [
    { ...one, stream: false },
    ...(STREAMED_ROUTES.has(one.route) ? [{ ...one, stream: true }] : []),
  ])
  const WORDS = 8
  const TOKENS = 5_000
  /** Servers report no usage with sound, so `Say something.` costs the estimate of its tokens. */
  const SPOKEN_TOKENS = 4

  const directives = { 'x-session-id': `stub:words=${WORDS}` }
  const gatewayOf = (way: Way): Program => limits.gateways[WAYS.indexOf(way) % 2] ?? limits.gateway
  const modelOf = ({ route }: Pick<Way, 'route'>): string => (route === 'audio/speech' ? UNREPORTED : PRICED)

  async function callBy(way: Way, key: IssuedKey, headers: Readonly<Record<string, string>> = directives): Promise<Answer> {
    const { path, route, stream: isStream } = way
    const fields = { model: modelOf(way), ...fieldsOf(route), ...(isStream && { stream: true }) }
    const request = routeRequest(route, fields, key.credential)
    const answer = await fetch(gatewayOf(way).url + path, { ...request, headers: { ...request.headers, ...headers } })
    return { status: answer.status, headers: answer.headers, text: lab.record(await answer.text()) }
  }

  /** Tokens by the report of the stub to the same call, which is sent to it directly and plain. */
  async function tokensOf({ route }: Way): Promise<number> {
    const request = routeRequest(route, { model: PRICED, ...fieldsOf(route) })
    const answer = await fetch(`${limits.modelURL}/v1/${route}`, { ...request, headers: { ...request.headers, ...directives } })
    const { input, output } = reportedTokens(await answer.text()) ?? { input: SPOKEN_TOKENS, output: 0 }
    return input + output
  }

  function expectRefused(way: Way, answer: Answer, row: ExpectedRow): void {
    const wait = answer.headers.get('retry-after')
    expectRow(answer, formatOf(way.route), { ...row, isFinal: wait === null, ...(wait !== null && { retryAfter: Number(wait) }) })
  }

  test('is one of the table', () => {
    const calls = ROUTES.filter(({ methods }) => methods === 'POST').flatMap(({ paths }) => paths)
    expect([...new Set([...WAYS, ...FREE].map(({ path }) => path))].toSorted()).toEqual(calls.toSorted())
  })

  test.each(WAYS)('takes a request, its tokens and its price: $path, stream $stream', async (way) => {
    const key = await issue({
      limits: { requestsPerMinute: 100, tokensPerMinute: TOKENS, maxConcurrentRequests: 3 },
      budgets: [lifeBudget({ name: 'money' }), lifeBudget({ name: 'tokens', unit: 'Tokens' })],
    })
    const { status, text, headers } = await callBy(way, key)
    expect([status, headers.get('content-type')?.startsWith('text/event-stream')], text).toEqual([200, way.stream])
    const used = await tokensOf(way)
    await eventually(
      async () => {
        const shown = await limits.view(key)
        expect(shown.limits.map(({ left }) => left)).toEqual([99, TOKENS - used, 3])
        expect(shown.budgets.map(({ held }) => Number(held))).toEqual([0, 0])
        const [money, tokens] = shown.budgets.map((budget) => Number(budget.used))
        expect([Math.round((money ?? 0) * 1_000_000), tokens], 'a token costs a micro-unit').toEqual([used, used])
      },
      { everyMs: 250 },
    )
  })

  test('fills the same requests per minute, and is refused when the others have filled them', async () => {
    const key = await issue({ limits: { requestsPerMinute: WAYS.length } })
    for (const way of WAYS) expect((await callBy(way, key)).status, way.path).toBe(200)
    for (const way of WAYS) expectRefused(way, await callBy(way, key), LIMITS_ROWS.requests)
  })

  test('fills the same permits, and is refused while the others hold them', async () => {
    const key = await issue({ limits: { maxConcurrentRequests: WAYS.length } })
    const running = WAYS.map((way) => callBy(way, key, { 'x-session-id': 'stub:delay=1500' }))
    await eventually(async () => expect(await limits.permits(key)).toBe(WAYS.length))
    const refused = await Promise.all(WAYS.map((way) => callBy(way, key)))
    for (const [at, way] of WAYS.entries()) expectRefused(way, refused[at] as Answer, LIMITS_ROWS.concurrency)
    for (const { status } of await Promise.all(running)) expect(status).toBe(200)
    await eventually(async () => expect(await limits.permits(key)).toBe(0))
  })

  test('is refused by the same budget when that is spent', async () => {
    const budget = lifeBudget({ amount: 100 })
    const key = await issue({ budgets: [budget] }, [[budget, 100]])
    for (const way of WAYS) expectRefused(way, await callBy(way, key), SPENT)
  })
})

describe.each(WIRE_FORMATS)('#16011, #20256, #27955, #28160: the permits of %s calls', (format) => {
  /** One plain and one streamed call at each pod: together as many calls as the limit allows. */
  const SET = [0, 1].flatMap((pod) => [false, true].map((isStream) => ({ pod, isStream })))

  const limited = (): Promise<IssuedKey> => issue({ limits: { maxConcurrentRequests: SET.length } })

  function fullSet(key: IssuedKey, directives: string, how: Question = {}): Array<Promise<Answer>> {
    return SET.map(({ pod, isStream }) =>
      admitted(key, { format, ...stream(isStream), ...directed(directives), ...how }, limits.gateways[pod]),
    )
  }

  /** As an SDK does: a call that Redis did not answer in time is sent again, since the machine may be shared. */
  async function admitted(key: IssuedKey, question: Question, gateway?: (typeof limits.gateways)[number]): Promise<Answer> {
    const answer = await limits.call(key, question, gateway)
    if (answer.status !== 503 || !answer.text.includes('limits cannot be checked')) return answer
    await sleep(1_000 * Number(answer.headers.get('retry-after')))
    return admitted(key, question, gateway)
  }

  async function expectAllFree(key: IssuedKey): Promise<void> {
    await eventually(async () => expect(await limits.permits(key)).toBe(0))
    for (let delayMs = 700; ; delayMs *= 4) {
      let isOver = false
      const next = Promise.all(fullSet(key, `delay=${delayMs}`)).finally(() => (isOver = true))
      await waitFor('all permits to be taken', async () => isOver || (await limits.permits(key)) === SET.length, { everyMs: 5 })
      const others = await Promise.all(limits.gateways.map((gateway) => admitted(key, { format }, gateway)))
      const wasOver = isOver
      expect((await next).map(({ status }) => status)).toEqual(SET.map(() => 200))
      if (wasOver) continue // the machine was too busy for the calls to meet
      expect(others.map(({ status }) => status)).toEqual(limits.gateways.map(() => 429))
      return
    }
  }

  const OVERLOADED = { openai: 503, anthropic: 529 }[format]
  test.each([
    ['a success', 'words=3', 200, PRICED],
    ['a 400 of the backend', 'status=400', 400, PRICED],
    ['a 422 of the backend', 'status=422', 400, PRICED],
    ['a 429 of the backend', 'status=429', OVERLOADED, PRICED],
    ['a 500 of the backend', 'status=500', 502, PRICED],
    ['a 503 of the backend', 'status=503', OVERLOADED, PRICED],
    ['a time-out of the backend', 'hang=0', 504, IMPATIENT],
  ])('are free after %s', async (_, directives, status, model) => {
    const key = await limited()
    const ended = await Promise.all(fullSet(key, directives, { model }))
    expect(ended.map((answer) => answer.status)).toEqual(SET.map(() => status))
    await expectAllFree(key)
  })

  const streamed = { fields: { stream: true } }
  test.each([
    ['falls silent', 'hang=3', IMPATIENT],
    ['breaks off', 'words=8,cut=4', PRICED],
  ])('are free after a stream that %s', async (_, directives, model) => {
    const key = await limited()
    const ended = await Promise.all(fullSet(key, directives, { ...streamed, model }))
    for (const { status, text } of ended) expect([status, text]).toEqual([200, expect.stringContaining('"error"')])
    await expectAllFree(key)
  })

  test.each<readonly [string, string, Question]>([
    ['before the answer', 'delay=20000', {}],
    ['in the middle of a stream', 'words=2000,gap=10', streamed],
  ])('are free after clients that leave %s', async (_, directives, how) => {
    const key = await limited()
    const leaving = new AbortController()
    const calls = fullSet(key, directives, { ...how, signal: leaving.signal })
    const early = Promise.race(calls).then(({ status, text }) =>
      Promise.reject(new Error(`a call ended early: ${status} ${text.slice(0, 500)}`)),
    )
    await Promise.race([early, eventually(async () => expect(await limits.permits(key)).toBe(SET.length))])
    early.catch(() => undefined) // from now on the calls end because their clients leave
    leaving.abort()
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(SET.map(() => 'rejected'))
    await expectAllFree(key)
  })
})

describe.each(WIRE_FORMATS)('#5764, #27748, #14144, #37000: answers to %s clients at a limit', (format) => {
  /** Micro-units, with digits that occur in no other number of an answer. */
  const AMOUNT = 7_654_321
  const SPENT = 3_141_592
  const AMOUNTS = [AMOUNT, SPENT, AMOUNT - SPENT].flatMap((micros) => [String(micros), (micros / 1_000_000).toFixed(6)])
  const ROOMY = { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000, maxConcurrentRequests: 100 }
  const FILL = { max_tokens: 100, messages: [{ role: 'user', content: 'stub:words=100' }] }
  const LARGE = { messages: [{ role: 'user', content: 'word '.repeat(1_000) }] }
  const HOLDING = { max_tokens: 1_500 }

  interface Cause {
    readonly cause: string
    readonly says: string
    readonly status?: number
    readonly limits?: KeyRecord['limits']
    /** Micro-units of the budget that were spent before. */
    readonly spent?: number
    readonly first?: Question
    /** Whether the first call still runs while the others are refused. */
    readonly runs?: boolean
    readonly then?: Question
  }
  const CAUSES: readonly Cause[] = [
    {
      cause: 'requests per minute',
      says: 'Rate limit reached: requests per minute of this key',
      limits: { ...ROOMY, requestsPerMinute: 1 },
      first: {},
    },
    {
      cause: 'tokens per minute',
      says: 'Rate limit reached: tokens per minute of this key',
      limits: { ...ROOMY, tokensPerMinute: 110 },
      first: { fields: FILL },
      then: { fields: FILL },
    },
    {
      cause: 'concurrent requests',
      says: 'Rate limit reached: concurrent requests of this key',
      limits: { ...ROOMY, maxConcurrentRequests: 1 },
      first: directed('delay=20000'),
      runs: true,
    },
    {
      cause: 'a request that is too large',
      says: 'Request too large for the tokens-per-minute limit of this key',
      status: 400,
      limits: { ...ROOMY, tokensPerMinute: 50 },
      then: { fields: LARGE },
    },
    {
      cause: 'a budget that running requests hold',
      says: 'Budget is held by running requests: budget "life" of this key',
      spent: AMOUNT - 2_000,
      first: { fields: HOLDING, ...directed('delay=20000') },
      runs: true,
      then: { fields: HOLDING },
    },
    { cause: 'a budget that is spent', says: 'Budget exhausted: budget "life" of this key', status: 402, spent: AMOUNT },
    {
      cause: 'a model without a price',
      says: 'Budget cannot be enforced: model unpriced has no price',
      status: 402,
      then: { model: 'unpriced' },
    },
  ]

  const ask = (key: IssuedKey, question: Question, isStream: boolean): Promise<Answer> =>
    limits.call(key, { format, ...question, fields: { ...question.fields, stream: isStream } }, limits.gateways[Number(isStream)])

  async function begin({ first, runs = false }: Cause, key: IssuedKey): Promise<() => Promise<unknown>> {
    const leaving = new AbortController()
    const call = first && ask(key, { ...first, signal: leaving.signal }, false)
    if (runs) await eventually(async () => expect(await limits.permits(key)).toBe(1))
    else if (call) expect((await call).status).toBe(200)
    return () => {
      leaving.abort()
      return Promise.allSettled([call])
    }
  }

  test.each(CAUSES)('a refusal for $cause names the limit and its owner, and no amount', async (one) => {
    const { says, status = 429, limits: limit = ROOMY, spent = SPENT, then = {} } = one
    const budget = lifeBudget({ amount: AMOUNT })
    const key = await issue({ limits: limit, budgets: [budget] }, [[budget, spent]])
    const end = await begin(one, key)
    try {
      for (const isStream of [false, true]) {
        const refused = await ask(key, then, isStream)
        expect([refused.status, messageOf(refused)]).toEqual([status, expect.stringContaining(says)])
        expectNoAmount(refused)
        if (status !== 402) expectRates(refused, { requests: limit.requestsPerMinute, tokens: limit.tokensPerMinute })
      }
    } finally {
      await end()
    }
  })

  test('the headers of both rates stand on 200 and 429, plain and streamed', async () => {
    const rates = { requests: 2, tokens: 10_000 }
    const key = await issue({ limits: { requestsPerMinute: rates.requests, tokensPerMinute: rates.tokens } })
    for (const status of [200, 429])
      for (const isStream of [false, true]) {
        const answer = await ask(key, {}, isStream)
        expect(answer.status).toBe(status)
        expectRates(answer, rates)
      }
  })

  function messageOf({ text }: Answer): string {
    return (JSON.parse(text) as { error: { message: string } }).error.message
  }

  /** The wait is the only number of a message; ids of requests are random. */
  function expectNoAmount(answer: Answer): void {
    expect(messageOf(answer).replace(/Please try again in [\d.]+s\.$/, '')).not.toMatch(/\d/)
    const headers = [...answer.headers].filter(([name]) => !name.endsWith('request-id'))
    for (const amount of AMOUNTS) expect(JSON.stringify([headers, messageOf(answer)])).not.toContain(amount)
  }

  function expectRates({ headers }: Answer, limit: Readonly<Record<'requests' | 'tokens', number | undefined>>): void {
    for (const kind of ['requests', 'tokens'] as const) {
      const field = (name: string): string | null =>
        headers.get(format === 'openai' ? `x-ratelimit-${name}-${kind}` : `anthropic-ratelimit-${kind}-${name}`)
      expect(field('limit')).toBe(String(limit[kind]))
      expect(field('remaining')).toMatch(/^\d+$/)
      expect(Number(field('remaining'))).toBeLessThanOrEqual(limit[kind] ?? 0)
      expect(field('reset')).toMatch(format === 'openai' ? /^(\d+m)?[\d.]+m?s$/ : /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    }
  }
})

/**
 * These slow cases, with windows of 6 s, run in parallel with the tests above. The wall clocks of the two processes are 10 s apart. The permits
 * of a process that was killed: `limits-processes.test.ts`.
 */
const TIMING = { windowMs: 6_000, slotMs: 100, leaseMs: 100 }
const CLOCK_SHIFTS_MS = [5_000, -5_000]
const FILLING: LimitedCallOptions = { maxTokens: 100, directives: 'words=100' }
const RETRIES: ReadonlyArray<{
  readonly uid: string
  readonly admits: number
  readonly limit: KeyRecord['limits']
  readonly call: LimitedCallOptions
}> = [
  { uid: 'requests-plain', admits: 3, limit: { requestsPerMinute: 3 }, call: {} },
  { uid: 'requests-streamed', admits: 3, limit: { requestsPerMinute: 3 }, call: { stream: true } },
  { uid: 'tokens-plain', admits: 1, limit: { tokensPerMinute: 120 }, call: FILLING },
  { uid: 'tokens-streamed', admits: 1, limit: { tokensPerMinute: 120 }, call: { ...FILLING, stream: true } },
]

let scaled: LimitsLab
let retried: Promise<readonly Retried[]>

async function beginScaled(): Promise<void> {
  const keys = Object.fromEntries(RETRIES.map(({ uid, limit }) => [uid, { limits: limit }]))
  scaled = await LimitsLab.start({
    timing: TIMING,
    clockShiftsMs: CLOCK_SHIFTS_MS,
    keys,
  })
  retried = Promise.all(RETRIES.map(retry))
  retried.catch(() => undefined) // the tests that await the results report the errors
}

async function endScaled(): Promise<void> {
  await Promise.allSettled([retried])
  await scaled.stop()
}

/** Repeats a 503 after the time that the answer names, as an SDK does, since Redis may be slow on a shared machine. */
async function asked(gateway: Pod, uid: string, options: LimitedCallOptions): Promise<Pick<Answer, 'status' | 'headers'>> {
  const answer = await scaled.open(gateway, uid, options)
  lab.record(await answer.text())
  if (answer.status !== 503) return answer
  await sleep(1_000 * Number(answer.headers.get('retry-after')))
  return asked(gateway, uid, options)
}

interface Retried {
  readonly uid: string
  readonly waitMs: number
  readonly retryAfter: string | null
  /** Statuses of the calls that fill the limit, of the next call, of a call after half of the wait, and of a call after the whole wait. */
  readonly statuses: readonly number[]
}

async function retry({ uid, admits, call }: (typeof RETRIES)[number]): Promise<Retried> {
  const [one, other] = scaled.gateways as readonly [Pod, Pod]
  for (;;) {
    const statuses: number[] = []
    const firstMs = performance.now()
    for (let i = 0; i < admits; i += 1) statuses.push((await asked(i % 2 === 0 ? one : other, uid, call)).status)
    const refused = await asked(other, uid, call)
    const waitMs = Number(refused.headers.get('retry-after-ms'))
    const refusedMs = performance.now()
    await sleep(waitMs / 2)
    const early = await asked(one, uid, call)
    const earlyMs = performance.now()
    if (refusedMs - firstMs > TIMING.windowMs / 3 || earlyMs - refusedMs > (waitMs * 5) / 6) {
      await sleep(2 * TIMING.windowMs)
      continue // the machine stood still, so that the first calls were old, or the early call was not early
    }
    await sleep(waitMs - (performance.now() - refusedMs))
    const { status } = await asked(one, uid, call)
    return { uid, waitMs, retryAfter: refused.headers.get('retry-after'), statuses: [...statuses, refused.status, early.status, status] }
  }
}

type Pod = LimitsLab['gateways'][number]

describe('#5764, #27748, #14144, #37000: a retry', () => {
  test.each(RETRIES)('at the time of Retry-After passes at either pod, and one half-way does not: $uid', async ({ uid, admits }) => {
    const { waitMs, retryAfter, statuses } = (await retried).find((one) => one.uid === uid)!
    expect(statuses).toEqual([...Array.from({ length: admits }, () => 200), 429, 429, 200])
    expect(retryAfter).toBe(String(Math.ceil(waitMs / 1_000)))
    expect(waitMs).toBeGreaterThan(TIMING.windowMs / 2)
    expect(waitMs).toBeLessThanOrEqual(TIMING.windowMs + longestLeaseMs(TIMING) + TIMING.slotMs)
  })
})

describe('#33923, #35273, #29986, commitpulse#6138: Redis', () => {
  /** Forms of the settings; one pod each, in this order. */
  const STORE_FORMS = ['user and password beside the URL', 'user and password in the URL', 'TLS with a private CA'] as const
  type StoreForm = (typeof STORE_FORMS)[number]
  /** The certificate is valid for this address. */
  const TLS_HOST = '127.0.0.1'
  type Policy = (typeof POLICIES)[number]
  /** Every value that the schema allows, and undefined. */
  const POLICIES = [...apiKeySpec.shape.onStoreUnavailable.unwrap().options, undefined] as const
  const CELLS = STORE_FORMS.flatMap((form) => POLICIES.map((policy) => ({ form, policy })))
  const LIMIT = 6
  const LIMITS = { requestsPerMinute: LIMIT, tokensPerMinute: 60_000, maxConcurrentRequests: LIMIT }
  /** Statuses of four calls at one pod while Redis does not answer. Three pods share the limit. */
  const AWAY: Readonly<Record<Exclude<Policy, undefined>, readonly number[]>> = {
    FailClosed: [503, 503, 503, 503],
    LocalShare: [200, 200, 429, 429],
  }
  const REFUSED = { ...LIMITS_ROWS.requests, starts: 'Rate limit reached: requests per minute of this key', isFinal: false }

  let forms: LimitedAnswers
  beforeAll(async () => {
    const [port, tls] = [await freePort(), writeTLS()]
    const args = ['--tls-port', String(port), '--tls-auth-clients', 'no', '--tls-cert-file', tls.cert, '--tls-key-file', tls.key]
    const env = (redis: RedisPart, index: number) => {
      const beside = redis.envFor('gateway')
      const user = `${beside.REDIS_USERNAME}:${encodeURIComponent(beside.REDIS_PASSWORD)}`
      const inURL = { REDIS_URL: `redis://${user}@${redis.ip}:${redis.port}/0` }
      return [beside, inURL, { REDIS_URL: `rediss://${user}@${TLS_HOST}:${port}`, REDIS_CA_FILE: tls.ca }][index] ?? {}
    }
    const redisArgs = ['--bind', lab.address.ip, TLS_HOST, ...args]
    forms = await LimitedAnswers.open(lab, 'forms', { gateways: STORE_FORMS.length, env, redisArgs })
  })
  afterAll(() => forms.close())

  function writeTLS(): Record<'ca' | 'cert' | 'key', string> {
    const written = (name: string, pem: string): string => {
      const file = join(lab.folder, `redis-tls-${name}.pem`)
      writeFileSync(file, pem, { mode: 0o600 })
      return file
    }
    return { ca: written('ca', TEST_CA), cert: written('cert', TEST_SERVER_CERT), key: written('key', TEST_SERVER_KEY) }
  }

  interface Keys {
    readonly cells: ReadonlyMap<(typeof CELLS)[number], IssuedKey>
    /** Keys with LocalShare and a budget: one that the pod has read before, and one that it has not. */
    readonly budgets: Readonly<Record<StoreForm, { readonly known: IssuedKey; readonly unknown: IssuedKey }>>
  }

  /** New keys without calls; one budget of each pod has some spend. */
  async function issueAll(): Promise<Keys> {
    const key = (change: Partial<KeyRecord>): Promise<IssuedKey> => forms.issue(`key-${count++}`, change)
    const cells = new Map<(typeof CELLS)[number], IssuedKey>()
    for (const cell of CELLS) cells.set(cell, await key({ limits: LIMITS, onStoreUnavailable: cell.policy }))
    const budgeted = (): Promise<IssuedKey> => key({ budgets: [lifeBudget()], onStoreUnavailable: 'LocalShare' })
    const budgets: Partial<Record<StoreForm, Keys['budgets'][StoreForm]>> = {}
    for (const form of STORE_FORMS) budgets[form] = { known: await budgeted(), unknown: await budgeted() }
    await waitFor('every pod to share the limits with the other two', async () => {
      const live = await Promise.all(forms.gateways.map((gateway) => gateway.metric('headgate_limit_live_pods')))
      return live.every((pods) => pods === STORE_FORMS.length)
    })
    for (const form of STORE_FORMS) expect((await call(budgets[form]!.known, form)).status).toBe(200)
    return { cells, budgets: budgets as Keys['budgets'] }
  }

  const call = (key: IssuedKey, form: StoreForm, format: WireFormat = 'openai'): Promise<Answer> =>
    forms.call(key, { format }, forms.gateways[STORE_FORMS.indexOf(form)])

  async function statusesOf(key: IssuedKey, form: StoreForm, calls: number): Promise<number[]> {
    const statuses: number[] = []
    for (let i = 0; i < calls; i += 1) {
      const format = i % 2 === 0 ? 'openai' : 'anthropic'
      const answer = await call(key, form, format)
      if (answer.status === 503) expectRow(answer, format, LIMITS_UNAVAILABLE)
      if (answer.status === 429) expectRow(answer, format, { ...REFUSED, retryAfter: Number(answer.headers.get('retry-after')) })
      statuses.push(answer.status)
    }
    return statuses
  }

  describe('that works', () => {
    let keys: Keys
    beforeAll(async () => {
      keys = await issueAll()
    })
    test.each(CELLS)('lets one pod admit the whole limit: $form, onStoreUnavailable $policy', async (cell) => {
      const admitted = Array.from({ length: LIMIT }, () => 200)
      expect(await statusesOf(keys.cells.get(cell)!, cell.form, LIMIT + 1)).toEqual([...admitted, 429])
    })
  })

  const user = (state: 'on' | 'off'): Promise<unknown> => forms.redis.admin.call('ACL', 'SETUSER', 'gateway', state)
  describe.each([
    {
      state: 'that stands still',
      enter: () => forms.redis.process.kill('SIGSTOP'),
      leave: () => forms.redis.process.kill('SIGCONT'),
    },
    {
      state: 'that refuses the credentials',
      enter: async () => {
        await user('off')
        await forms.redis.admin.call('CLIENT', 'KILL', 'USER', 'gateway')
      },
      leave: () => user('on'),
    },
    {
      state: 'that is stopped',
      enter: () => forms.redis.stop(),
      leave: async () => {
        await forms.redis.start()
        await forms.rebuild()
      },
    },
  ])('$state', ({ enter, leave }) => {
    let keys: Keys
    let pids: readonly number[]
    beforeAll(async () => {
      keys = await issueAll()
      pids = forms.gateways.map(({ process }) => process.pid)
      await enter()
    })

    test.each(CELLS)('answers by the policy: $form, onStoreUnavailable $policy', async (cell) => {
      const expected = AWAY[cell.policy ?? 'FailClosed']
      expect(await statusesOf(keys.cells.get(cell)!, cell.form, expected.length)).toEqual(expected)
    })

    test.each(STORE_FORMS)('leaves a share of a known budget, and refuses calls for an unknown budget: %s', async (form) => {
      const { known, unknown } = keys.budgets[form]
      expect(await statusesOf(known, form, 1)).toEqual([200])
      expect(await statusesOf(unknown, form, 2)).toEqual([503, 503])
    })

    test('is used again by every pod soon after Redis works, without a restart', async () => {
      await leave()
      for (const cell of CELLS.filter(({ policy }) => policy === 'FailClosed')) {
        const key = keys.cells.get(cell)!
        await eventually(async () => expect((await call(key, cell.form)).status).toBe(200))
      }
      expect(forms.gateways.map(({ process }) => process.pid)).toEqual(pids)
    })
  })
})
