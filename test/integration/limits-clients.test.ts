/** The behavior of common SDKs at a limit: requests on the wire, class of the error, and whether the announced wait is right. */
import Anthropic from '@anthropic-ai/sdk'
import { ChatOpenAI } from '@langchain/openai'
import OpenAI from 'openai'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLab } from '../support/lab.ts'
import { LimitedAnswers, lifeBudget, PRICED } from '../support/limited-answers.ts'
import type { IssuedKey } from '../support/records.ts'
import { eventually } from '../support/wait-for.ts'

const ASK = { model: PRICED, max_tokens: 20, messages: [{ role: 'user' as const, content: 'Say something.' }] }
/** Age of an exhausted limit before a client calls, ms. The wait is then shorter than a minute, so that the answer names all of it. */
const AGE_MS = 5_000
/** A retry this long before the announced time is too early, also on a machine with other work, ms. */
const EARLY_MS = 2_000

const lab = openLab()
let limits: LimitedAnswers
let count = 0
const background: Array<() => void> = []

beforeAll(async () => {
  limits = await LimitedAnswers.open(lab, 'clients', { gateways: 3 })
  for (const begin of background) begin()
})
afterAll(() => limits.close())

class Wire {
  readonly statuses: number[] = []
  readonly at: number[] = []
  /** Of the first answer, by its header, ms. */
  announcedMs: number | undefined
  readonly fetch: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    this.at.push(performance.now())
    this.statuses.push(answer.status)
    this.announcedMs ??= Number(answer.headers.get('retry-after-ms'))
    return answer
  }
}

interface Client {
  readonly wire: Wire
  readonly call: () => Promise<unknown>
}

function openai({ credential }: IssuedKey, world = limits, body = ASK): Client {
  const wire = new Wire()
  const client = new OpenAI({ apiKey: credential, baseURL: `${world.gateway.url}/v1`, fetch: wire.fetch })
  return { wire, call: () => client.chat.completions.create(body) }
}

function anthropic({ credential }: IssuedKey, world = limits, body = ASK): Client {
  const wire = new Wire()
  const client = new Anthropic({ authToken: credential, apiKey: null, baseURL: world.gateway.url, fetch: wire.fetch })
  return { wire, call: () => client.messages.create(body) }
}

function langchain({ credential }: IssuedKey, world = limits): Client {
  const wire = new Wire()
  const configuration = { baseURL: `${world.gateway.url}/v1`, fetch: wire.fetch }
  const model = new ChatOpenAI({ model: PRICED, maxTokens: 20, apiKey: credential, configuration, maxRetries: 3 })
  return { wire, call: () => model.invoke('Say something.') }
}

const CLIENTS = { openai, '@anthropic-ai/sdk': anthropic, 'LangChain.js': langchain }
type ClientName = keyof typeof CLIENTS
const NAMES = Object.keys(CLIENTS) as ClientName[]
const SDKS = ['openai', '@anthropic-ai/sdk'] as const

async function failure(call: () => Promise<unknown>): Promise<unknown> {
  return await call().then(
    () => undefined,
    (error: unknown) => error,
  )
}

describe.each(SDKS)('%s', (name) => {
  test('L3 sends one request that is larger than all tokens per minute, and raises its class of 400', async () => {
    const key = await limits.issue(`large-${count++}`, { limits: { tokensPerMinute: 10 } })
    const messages = [{ role: 'user' as const, content: 'word '.repeat(500) }]
    const { wire, call } = CLIENTS[name](key, limits, { ...ASK, messages })
    expect(await failure(call)).toBeInstanceOf(name === 'openai' ? OpenAI.BadRequestError : Anthropic.BadRequestError)
    expect(wire.statuses).toEqual([400])
  })

  test.each([
    ['that is spent', 10, /Budget exhausted: budget \\?"life\\?" of this key/, '0.00'],
    ['with less left than the call may cost', 3, /has 0\.000007 left, and this call may cost 0\.\d+; lower max_tokens/, '0.000007'],
  ])('L4 sends one request at a budget %s, and shows the text and the rest', async (_, spent, text, left) => {
    const budget = lifeBudget({ amount: 10 })
    const key = await limits.issue(`spent-${count++}`, { budgets: [budget] }, [[budget, spent]])
    const { wire, call } = CLIENTS[name](key)
    const error = await failure(call)
    expect(wire.statuses).toEqual([402])
    expect(error).toMatchObject({ status: 402 })
    expect(String(error)).toMatch(text)
    const metadata = { limit: 'budget', budget: 'life', unit: 'Currency', owner: 'key', left, resetsAt: null }
    if (name === 'openai') expect(error).toMatchObject({ code: 'insufficient_quota', type: 'insufficient_quota', error: { metadata } })
    else expect(error).toMatchObject({ error: { error: { type: 'billing_error', metadata } } })
  })

  test('waits its five seconds at a limit of concurrency, and passes', async () => {
    const key = await limits.issue(`busy-${count++}`, { limits: { maxConcurrentRequests: 1 } })
    const leaving = new AbortController()
    const running = limits.call(key, { headers: { 'x-session-id': 'stub:delay=60000' }, signal: leaving.signal })
    await eventually(async () => expect(await limits.permits(key)).toBe(1))
    const left = running.then(
      () => undefined,
      (error: unknown) => error,
    )
    const { wire, call } = CLIENTS[name](key)
    const answered = call()
    await eventually(() => expect(wire.statuses).toEqual([429]))
    leaving.abort()
    await answered
    expect(wire.statuses).toEqual([429, 200])
    expect((wire.at[1] ?? 0) - (wire.at[0] ?? 0)).toBeGreaterThanOrEqual(3_700) // five seconds less a quarter of jitter
    expect(await left).toBeInstanceOf(Error)
  })

  test('parses the headers: they are on the answer of every call', async () => {
    const key = await limits.issue(`headers-${count++}`, { limits: { requestsPerMinute: 10, tokensPerMinute: 10_000 } })
    const { response } =
      name === 'openai'
        ? await new OpenAI({ apiKey: key.credential, baseURL: `${limits.gateway.url}/v1` }).chat.completions.create(ASK).withResponse()
        : await new Anthropic({ authToken: key.credential, apiKey: null, baseURL: limits.gateway.url }).messages.create(ASK).withResponse()
    const names =
      name === 'openai'
        ? ['x-ratelimit-remaining-requests', 'x-ratelimit-remaining-tokens']
        : ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-tokens-remaining']
    expect(names.map((header) => Number(response.headers.get(header)) > 0)).toEqual([true, true])
  })
})

test('LangChain.js gives up at once at a spent budget', async () => {
  const budget = lifeBudget({ amount: 10 })
  const { wire, call } = langchain(await limits.issue(`spent-${count++}`, { budgets: [budget] }, [[budget, 10]]))
  expect(await failure(call)).toBeInstanceOf(Error)
  expect(wire.statuses).toEqual([402])
})

function inBackground<T>(run: () => Promise<T>): () => Promise<T> {
  let outcome: Promise<T> | undefined
  background.push(() => {
    outcome = run()
    outcome.catch(() => undefined) // the test that awaits the outcome reports the error
  })
  return () => outcome ?? Promise.reject(new Error('not begun'))
}

describe('at an exhausted limit', () => {
  const used = async (limit: IssuedKey['record']['limits'], fields: Readonly<Record<string, unknown>> = {}): Promise<IssuedKey> => {
    const key = await limits.issue(`used-${count++}`, { limits: limit })
    expect((await limits.call(key, { fields })).status).toBe(200)
    await sleep(AGE_MS)
    return key
  }
  const WORDS = { max_tokens: 100, messages: [{ role: 'user', content: 'stub:words=100' }] }

  const atTheTime = inBackground(async () => {
    for (;;) {
      const key = await used({ requestsPerMinute: 1 })
      const refused = await limits.call(key)
      const waitMs = Number(refused.headers.get('retry-after-ms'))
      const began = performance.now()
      await sleep(waitMs - EARLY_MS)
      const early = await limits.call(key)
      const leftMs = waitMs - (performance.now() - began)
      if (leftMs < EARLY_MS / 2) continue // the machine stood still, so that the call was not early
      await sleep(leftMs)
      const announced = `${waitMs} ms, and ${early.headers.get('retry-after-ms')} ms when ${leftMs.toFixed(0)} ms were left`
      return { waitMs, announced, statuses: [refused.status, early.status, (await limits.call(key)).status] }
    }
  })
  test('L1 a retry at retry-after-ms passes, and one 2 s earlier does not', async () => {
    const { waitMs, announced, statuses } = await atTheTime()
    expect(waitMs).toBeLessThan(60_000)
    expect(statuses, announced).toEqual([429, 429, 200])
  })

  const waiting = (name: ClientName, limit: IssuedKey['record']['limits'], fields = {}): (() => Promise<Wire>) =>
    inBackground(async () => {
      const { wire, call } = CLIENTS[name](await used(limit, fields))
      await call()
      return wire
    })
  const atRequests = NAMES.map((name) => [name, waiting(name, { requestsPerMinute: 1 })] as const)
  const atTokens = NAMES.map((name) => [name, waiting(name, { tokensPerMinute: 110 }, WORDS)] as const)

  test.each(atRequests)('L1 L11 %s waits as announced at requests per minute, and its second request passes', async (_, ended) => {
    const { statuses, at, announcedMs = 0 } = await ended()
    expect(statuses).toEqual([429, 200])
    expect(announcedMs).toBeGreaterThan(10_000)
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(announcedMs - 1_000)
  })

  test.each(atTokens)('L11 %s waits as announced at tokens per minute, and its second request passes', async (_, ended) => {
    expect((await ended()).statuses).toEqual([429, 200])
  })

  const limit = 120
  const threePods = inBackground(async () => {
    const key = await limits.issue('three-pods', { limits: { requestsPerMinute: limit } })
    const admitted: { readonly sentMs: number; readonly answeredMs: number }[] = []
    const end = performance.now() + 75_000
    const client = async (at: number): Promise<void> => {
      while (performance.now() < end) {
        const sentMs = performance.now()
        const { status } = await limits.call(key, {}, limits.gateways[at % 3])
        if (status === 200) admitted.push({ sentMs, answeredMs: performance.now() })
        await sleep(1_000)
      }
    }
    await Promise.all(Array.from({ length: 6 }, (_, at) => sleep(at * 160).then(() => client(at))))
    return admitted
  })
  test('L2 in any minute three pods together admit no more than the limit, and nearly all of it', async () => {
    const admitted = await threePods()
    const windows = admitted.map(({ sentMs: fromMs }) => {
      const untilMs = fromMs + 60_000
      const sent = admitted.filter(({ sentMs }) => sentMs >= fromMs && sentMs < untilMs)
      return { sent: sent.length, certain: sent.filter(({ answeredMs }) => answeredMs < untilMs).length }
    })
    expect(Math.max(...windows.map(({ certain }) => certain)), 'certainly admitted within one minute').toBeLessThanOrEqual(limit)
    expect(Math.max(...windows.map(({ sent }) => sent))).toBeGreaterThan(0.9 * limit)
  })
})
