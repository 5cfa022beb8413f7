/**
 * The price of a call of each route by the way in which the call ends, and the refusals of limits. Gateway processes and Redis are real; the model server is the stub.
 * What a call costs on a real llama-server: `call-routes.test.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallRoute } from '#contract/values/call-routes.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { DIALECTS } from '../../gateway/dialects/dialects.ts'
import { type Answer, type ExpectedRow, expectRow } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import { LimitedAnswers, lifeBudget } from '../support/limited-answers.ts'
import type { IssuedKey } from '../support/records.ts'
import { fieldsOf, formatOf, type ReportedTokens, reportedTokens, routeRequest, STREAMED_ROUTES } from '../support/route-calls.ts'
import { LIMITS, TIMED_OUT } from '../support/rows.ts'
import { eventually } from '../support/wait-for.ts'

/** Micro-units of a token and of a call. */
const PRICE = { input: 3, output: 15, call: 2_000 }
const PRICING = {
  ...{ inputPerMillion: 1_000_000 * PRICE.input, cachedInputPerMillion: 1_000_000, outputPerMillion: 1_000_000 * PRICE.output },
  perRequest: PRICE.call,
}
const REPORTED = 'reported'
/** Their servers report nothing before a call breaks, so that the estimates of a prompt do not change. */
const BROKEN = 'broken'
const SILENT = 'silent'
/** An answer has at most 16 tokens, as far as the gateway knows. */
const SHORT = 'short'

/** Maximum tokens of an answer with text. */
const CAP = 40
/** So many words come before a call breaks. */
const WORDS = 5

interface Route {
  readonly route: CallRoute
  /** The estimate of its prompt. */
  readonly prompt: number
  /** Pieces of the answer of the stub before its first word. */
  readonly before: number
}

const ROUTES: readonly Route[] = [
  { route: 'chat/completions', prompt: 8, before: 1 },
  { route: 'completions', prompt: 4, before: 0 },
  { route: 'responses', prompt: 4, before: 3 },
  { route: 'embeddings', prompt: 8, before: 0 },
  { route: 'rerank', prompt: 22, before: 0 },
  { route: 'audio/transcriptions', prompt: 11, before: 0 },
  { route: 'audio/speech', prompt: 4, before: 1 },
  { route: 'messages', prompt: 8, before: 3 },
]
const STREAMED = ROUTES.filter(({ route }) => STREAMED_ROUTES.has(route))
const WAYS = ROUTES.flatMap((one) => [{ ...one, stream: false }, ...(STREAMED.includes(one) ? [{ ...one, stream: true }] : [])])
/** Ways whose answer comes in pieces. */
const IN_PIECES = WAYS.filter(({ route, stream }) => stream || route === 'audio/speech')
const WHOLE = WAYS.filter((way) => !IN_PIECES.includes(way))

const lab = openLab()
let limits: LimitedAnswers
let count = 0

beforeAll(async () => {
  const timeouts = { firstByteSeconds: 1, idleSeconds: 1, totalSeconds: 60 }
  limits = await LimitedAnswers.open(lab, 'money', {
    gateways: 2,
    models: {
      [REPORTED]: { pricing: PRICING },
      [BROKEN]: { pricing: PRICING },
      [SILENT]: { pricing: PRICING, timeouts },
      [SHORT]: { pricing: PRICING, maxOutputTokens: 16 },
    },
    accounts: {
      requests: { limits: { requestsPerMinute: 1 } },
      tokens: { limits: { tokensPerMinute: 60 } },
      permits: { limits: { maxConcurrentRequests: 1 } },
      money: { budgets: [lifeBudget({ amount: PRICE.call })] },
    },
  })
})
afterAll(() => limits.close())

const issue = (change: Partial<KeyRecord>): Promise<IssuedKey> => limits.issue(`key-${count++}`, change)
/** A key that may do anything, and whose money is counted. */
const counted = (): Promise<IssuedKey> =>
  issue({ limits: { requestsPerMinute: 100, maxConcurrentRequests: 3 }, budgets: [lifeBudget({ amount: 100_000_000 })] })

interface Call {
  readonly route: CallRoute
  readonly stream?: boolean
  readonly model?: string
  /** For the stub model: `examples/stub-model/README.md`. */
  readonly directives?: string
  readonly signal?: AbortSignal
}

async function open(key: IssuedKey, { route, stream = false, model = BROKEN, directives = '', signal }: Call): Promise<Response> {
  const request = routeRequest(route, { model, ...fieldsOf(route, CAP), ...(stream && { stream }) }, key.credential)
  const headers = { ...request.headers, 'x-session-id': `stub:${directives}` }
  return await fetch(`${limits.gateway.url}/v1/${route}`, { ...request, headers, ...(signal && { signal }) })
}

async function call(key: IssuedKey, how: Call): Promise<Answer> {
  const answer = await open(key, how)
  return { status: answer.status, headers: answer.headers, text: lab.record(await answer.text()) }
}

/** The plain answer of the stub itself to the same call. */
async function direct(route: CallRoute, model: string, directives = ''): Promise<string> {
  const request = routeRequest(route, { model, ...fieldsOf(route, CAP) })
  const answer = await fetch(`${limits.modelURL}/v1/${route}`, {
    ...request,
    headers: { ...request.headers, 'x-session-id': `stub:${directives}` },
  })
  return await answer.text()
}

function cost({ input, output }: ReportedTokens): number {
  return PRICE.input * input + PRICE.output * output + PRICE.call
}

/** Waits until the only call of a key is settled: with this cost in micro-units, as one request, and without a hold or a permit. */
async function expectCost(key: IssuedKey, micros: number): Promise<void> {
  await eventually(
    async () => {
      const { budgets, limits: left } = await limits.view(key)
      expect(budgets.map(({ used, held }) => [Math.round(1_000_000 * Number(used)), Number(held)])).toEqual([[micros, 0]])
      expect(left.map((one) => one.left)).toEqual([99, 3])
      expect(await limits.permits(key)).toBe(0)
    },
    { everyMs: 250 },
  )
}

/** Reads an answer until its last word of `WORDS` has come, or so much of a sound. */
async function readWords(answer: Response, { route }: Route): Promise<void> {
  let seen = ''
  const isThere = (): boolean => (route === 'audio/speech' ? seen.length >= 2_000 * WORDS : seen.includes(`word${WORDS}"`))
  const reader = answer.body?.getReader()
  while (!isThere()) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true }
    if (done) throw new Error(`the answer has ended: ${seen}`)
    seen += Buffer.from(value ?? []).toString('latin1')
  }
}

/** A call of `WORDS` words that its server then breaks off or leaves. */
const broken = (by: 'cut' | 'hang', { before }: Route): string => `words=20,${by}=${before + WORDS}`

/** The cost of a call that ended in the middle. Anthropic's format alone reports the prompt at the start. */
async function costOfPart(one: Route): Promise<number> {
  const { route, prompt } = one
  const input = route === 'messages' ? (reportedTokens(await direct(route, BROKEN))?.input ?? Number.NaN) : prompt
  return cost({ input, output: STREAMED.some((other) => other.route === route) ? WORDS : 0 })
}

/** The cost of a call without an answer: that of an answer as long as its cap. */
const costOfUnseen = ({ route, prompt }: Route): number => cost({ input: prompt, output: STREAMED_ROUTES.has(route) ? CAP : 0 })

test('the tests have every route that is charged', () => {
  const charged = [...DIALECTS.values()].filter(({ isCharged }) => isCharged).map(({ route }) => route)
  expect(ROUTES.map(({ route }) => route)).toEqual(charged)
})

describe('a call costs what its server reports, and the price of a call:', () => {
  test.each(WAYS)('$route, stream $stream', async (way) => {
    const { route, stream, prompt } = way
    const isSound = route === 'audio/speech'
    const key = await counted()
    const { status, text } = await call(key, { route, stream, model: isSound ? BROKEN : REPORTED, directives: 'words=8' })
    expect(status, text).toBe(200)
    const report = reportedTokens(await direct(route, REPORTED, 'words=8'))
    expect(report === undefined).toBe(isSound) // sound costs the estimate of its text
    await expectCost(key, cost(report ?? { input: prompt, output: 0 }))
  })
})

describe('a call whose client leaves', () => {
  test.each(WAYS)('before the answer costs a usual answer, and no more than was held: $route, stream $stream', async (way) => {
    const key = await counted()
    const leaving = new AbortController()
    const before = limits.reached
    const answer = open(key, { ...way, directives: 'delay=20000', signal: leaving.signal })
    await eventually(() => expect(limits.reached).toBe(before + 1))
    const held = Number((await limits.ledger(key.record.uid, 'budget'))['life:Currency:Lifetime:0:H'])
    expect(held).toBeGreaterThanOrEqual(cost({ input: mostTokens(way), output: STREAMED_ROUTES.has(way.route) ? CAP : 0 }))
    leaving.abort()
    await expect(answer).rejects.toThrow('aborted')
    await expectCost(key, costOfUnseen(way))
  })

  test.each(IN_PIECES)('in the middle costs what was sent until then: $route', async (way) => {
    const key = await counted()
    const leaving = new AbortController()
    await readWords(await open(key, { ...way, directives: broken('hang', way), signal: leaving.signal }), way)
    leaving.abort()
    await expectCost(key, await costOfPart(way))
  })
})

/** No server finds more tokens in a prompt. */
function mostTokens({ route }: Route): number {
  if (route === 'audio/transcriptions') return 2_900 / 50 // a token of sound has at least 50 bytes
  const fields = fieldsOf(route, CAP)
  const again = route === 'rerank' ? 2 * 'Which animal?'.length : 0 // three documents
  return JSON.stringify(fields).length + again
}

/** The last event of a broken stream, by format. */
const LAST_EVENTS = {
  openai: /data: \{"error":\{"message":"[^]*\}\n\ndata: \[DONE\]\n\n$/,
  responses: /event: response\.failed\ndata: [^]*\n\nevent: error\ndata: \{"type":"error"[^]*\}\n\n$/,
  anthropic: /event: error\ndata: \{"type":"error","error":[^]*\}\n\n$/,
}

/** A call that comes in pieces, and how it ends for its client. */
async function expectBroken(key: IssuedKey, how: Call): Promise<void> {
  const answer = await open(key, how)
  expect(answer.status).toBe(200)
  if (how.route === 'audio/speech') await expect(answer.arrayBuffer()).rejects.toThrow('terminated')
  else {
    const text = lab.record(await answer.text())
    expect(text).toContain(`word${WORDS}"`)
    expect(text).toMatch(LAST_EVENTS[how.route === 'responses' ? 'responses' : formatOf(how.route)])
  }
}

describe('a call whose server', () => {
  test.each(IN_PIECES)('breaks off in the middle costs what was sent until then: $route', async (way) => {
    const key = await counted()
    await expectBroken(key, { ...way, directives: broken('cut', way) })
    await expectCost(key, await costOfPart(way))
  })

  test.each(IN_PIECES)('falls silent in the middle costs what was sent until then: $route', async (way) => {
    const key = await counted()
    await expectBroken(key, { ...way, model: SILENT, directives: broken('hang', way) })
    await expectCost(key, await costOfPart(way))
  })

  test.each(WHOLE)('breaks off an answer that is not a stream costs the whole, by its declared length: $route', async (way) => {
    const { route, prompt } = way
    const key = await counted()
    const answer = await call(key, { route, directives: 'words=8,cut=1' })
    expectRefused(route, answer, BROKEN_ROW)
    const bytes = Buffer.byteLength(await direct(route, BROKEN, 'words=8'))
    await expectCost(key, cost({ input: prompt, output: STREAMED_ROUTES.has(route) ? Math.ceil(bytes / 4) : 0 }))
  })

  test.each(WAYS)('never answers costs a usual answer: $route, stream $stream', async (way) => {
    const key = await counted()
    expectRefused(way.route, await call(key, { ...way, model: SILENT, directives: 'hang=0' }), TIMED_OUT)
    await expectCost(key, costOfUnseen(way))
  })

  test.each(WAYS)('refuses the call is not paid: $route, stream $stream', async (way) => {
    const key = await counted()
    expect((await call(key, { ...way, directives: 'status=400' })).status).toBe(400)
    await expectCost(key, 0)
  })
})

const BROKEN_ROW: ExpectedRow = {
  ...{ status: 502, openai: ['server_error', 'upstream_error', null], anthropic: 'api_error', starts: 'Backend error' },
}

function expectRefused(route: CallRoute, answer: Answer, row: ExpectedRow): void {
  const wait = answer.headers.get('retry-after')
  const isFinal = answer.headers.get('x-should-retry') === 'false'
  expectRow(answer, formatOf(route), { ...row, isFinal, ...(wait !== null && { retryAfter: Number(wait) }) })
}

describe('every route is refused in the format of its client,', () => {
  const ofAccount = (row: ExpectedRow): ExpectedRow => ({ ...row, starts: `${row.starts} of this account`, owner: 'account' })
  const expectAllRefused = async (key: IssuedKey, row: ExpectedRow): Promise<void> => {
    for (const way of WAYS) expectRefused(way.route, await call(key, { ...way, model: REPORTED }), row)
  }
  /** A call that uses more tokens than it holds. */
  const fill = async (key: IssuedKey): Promise<void> => {
    const fields = { messages: [{ role: 'user', content: 'stub:words=100' }] }
    const answer = await limits.call(key, { model: SHORT, body: { model: SHORT, ...fields } })
    expect(answer.status, answer.text).toBe(200)
    await eventually(async () =>
      expect(Number((await limits.ledger(key.record.account ?? key.record.uid, 'rate'))['ttot'])).toBeGreaterThan(60),
    )
  }
  const TOO_SMALL: ExpectedRow = {
    ...{ status: 402, openai: ['insufficient_quota', 'insufficient_quota', null], anthropic: 'billing_error', limit: 'budget' },
    starts: 'This call does not fit the budget',
  }

  test('by the tokens per minute of its key', async () => {
    const key = await issue({ limits: { tokensPerMinute: 60 } })
    await fill(key)
    await expectAllRefused(key, LIMITS.tokens)
  })

  test('by a budget of its key that is smaller than the call may cost', async () => {
    await expectAllRefused(await issue({ budgets: [lifeBudget({ amount: PRICE.call })] }), TOO_SMALL)
  })

  test('by the requests per minute of its account', async () => {
    const key = await issue({ account: 'requests' })
    expect((await call(key, { route: 'embeddings', model: REPORTED })).status).toBe(200)
    await expectAllRefused(key, ofAccount(LIMITS.requests))
  })

  test('by the tokens per minute of its account', async () => {
    const key = await issue({ account: 'tokens' })
    await fill(key)
    await expectAllRefused(key, ofAccount(LIMITS.tokens))
  })

  test('by the concurrent requests of its account', async () => {
    const [holding, key] = [await issue({ account: 'permits' }), await issue({ account: 'permits' })]
    const leaving = new AbortController()
    const running = open(holding, { route: 'audio/speech', directives: 'delay=20000', signal: leaving.signal })
    const fields = async (): Promise<string> => JSON.stringify(await limits.ledger('permits', 'conc'))
    await eventually(async () => expect(await fields()).toContain('"n:'))
    await expectAllRefused(key, ofAccount(LIMITS.concurrency))
    leaving.abort()
    await expect(running).rejects.toThrow('aborted')
  })

  test('by a budget of its account', async () => {
    await expectAllRefused(await issue({ account: 'money' }), { ...TOO_SMALL, owner: 'account' })
  })
})

describe.each(['/v1/messages/count_tokens', '/v1/v1/messages/count_tokens'])('the count of tokens at %s', (path) => {
  const PER_MINUTE = 120 // COUNT_TOKENS_PER_MINUTE
  const ask = async (key: IssuedKey, gateway = limits.gateway): Promise<Answer> => {
    const route = 'messages/count_tokens'
    const answer = await fetch(gateway.url + path, routeRequest(route, { model: REPORTED, ...fieldsOf(route) }, key.credential))
    return { status: answer.status, headers: answer.headers, text: lab.record(await answer.text()) }
  }

  test('costs nothing, takes nothing of any limit of the key, and passes when all of them are used up', async () => {
    const budget = lifeBudget({ amount: 100 })
    const key = await issue({ limits: { requestsPerMinute: 1, tokensPerMinute: 10, maxConcurrentRequests: 1 }, budgets: [budget] })
    const spent = await limits.issue(`key-${count++}`, { budgets: [budget] }, [[budget, 100]])
    expect((await call(spent, { route: 'messages' })).status).toBe(402)
    for (const one of [key, key, key, spent]) expect(await ask(one)).toMatchObject({ status: 200, text: '{"input_tokens":2}' })
    const shown = await limits.view(key)
    expect(shown.limits.map(({ left }) => left)).toEqual([1, 10, 1])
    expect(shown.budgets.map(({ used, held }) => [Number(used), Number(held)])).toEqual([[0, 0]])
  })

  test('has a limit of its own for each key and pod, and the refusal says when the next one passes', async () => {
    const key = await issue({})
    for (let at = 0; at < PER_MINUTE; at += 1) expect((await ask(key)).status).toBe(200)
    const refused = await ask(key)
    const { limit: _, ...row } = LIMITS.requests // a limit of the pod, of which no view of the key tells more
    expectRefused('messages/count_tokens', refused, { ...row, starts: `${row.starts} of this key` })
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(1_000)
    expect((await ask(key, limits.gateways[1])).status).toBe(200)
    expect((await ask(await issue({}))).status).toBe(200)
  })
})
