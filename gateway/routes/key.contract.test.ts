import { afterEach, describe, expect, test } from 'vitest'
import { modelRecord, startFront, type FrontGateway } from '../../test/support/front-gateway.ts'
import { budget, LedgerWorld } from '../../test/support/ledger-world.ts'
import { CallLimits } from '../limits/call-limits.ts'

/** A millionth of a unit for each token. */
const pricing = { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000, cachedInputPerMillion: 0 }
let front: FrontGateway
let world: LedgerWorld

afterEach(() => front.stop())

async function start(): Promise<void> {
  world = new LedgerWorld()
  const ledger = world.process()
  const { clock } = world
  const limits = new CallLimits({ ledger, clock, tokenHold: 'Declared' })
  const models = [modelRecord('llama', { aliases: ['small'], pricing }), modelRecord('coder', { pricing })]
  front = await startFront({ models, app: { limits, ledger } })
}

async function shown(key: string): Promise<{ status: number; headers: Headers; json: Record<string, unknown> }> {
  const response = await fetch(`${front.base}/v1/key`, { headers: { authorization: `Bearer ${key}` } })
  return { status: response.status, headers: response.headers, json: (await response.json()) as Record<string, unknown> }
}

async function call(key: string): Promise<Headers> {
  const body = JSON.stringify({ model: 'llama', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] })
  const response = await fetch(`${front.base}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body })
  expect(response.status).toBe(200)
  return response.headers
}

describe('GET /v1/key', () => {
  test('shows the caller its own key: prefix, end, models, and no limits where it has none', async () => {
    await start()
    const key = front.issue({ models: [['llama', 'qwen-*']], expiresMs: Date.UTC(2027, 0, 1, 12) })
    expect((await shown(key)).json).toEqual({
      ...{ object: 'key', prefix: `${key.slice(0, 8)}…${key.slice(-4)}`, expiresAt: '2027-01-01T12:00:00Z' },
      ...{ models: ['llama', 'qwen-*'], limits: [], budgets: [] },
    })
    expect(world.store.calls).toEqual([])
    expect((await shown(front.issue())).json).toMatchObject({ expiresAt: null, models: ['*'] })
  })

  test('shows what several lists leave over', async () => {
    await start()
    expect((await shown(front.issue({ models: [['*'], ['coder']] }))).json).toMatchObject({ models: ['coder'] })
  })

  test('T30 shows each limit, its rest and its reset, as the headers of calls do', async () => {
    await start()
    const limits = { requestsPerMinute: 10, tokensPerMinute: 1_000, maxConcurrentRequests: 3 }
    const key = front.issue({ limits })
    await call(key)
    const { json } = await shown(key)
    const [requests, tokens, permits] = json['limits'] as Record<string, unknown>[]
    expect(requests).toMatchObject({ limit: 'requests_per_minute', owner: 'key', amount: 10, left: 9 })
    const bookedUntil = Date.parse(String(requests?.['resetsAt'])) - world.clock.now()
    expect(bookedUntil).toBeGreaterThan(59_000)
    expect(bookedUntil).toBeLessThan(63_000)
    expect(tokens).toMatchObject({ limit: 'tokens_per_minute', owner: 'key', amount: 1_000 })
    expect(permits).toEqual({ limit: 'concurrent_requests', owner: 'key', amount: 3, left: 3, resetsAt: null })
  })

  test('T30 shows budgets in decimals, with spend, holds, rest and the end of the window', async () => {
    await start()
    const budgets = [
      budget({ amount: 25_000_000 }),
      budget({ name: 'all', unit: 'Tokens', window: 'Lifetime', amount: 5, onExceeded: 'Audit' }),
    ]
    const key = front.issue({ uid: 'paid', budgets })
    world.memory.seed('paid', 'seed', [
      [`month:Currency:Month:${Date.UTC(2026, 0)}`, 12_345_678],
      ['all:Tokens:Lifetime:0', 9],
    ])
    const { json } = await shown(key)
    expect(json['budgets']).toEqual([
      {
        ...{ limit: 'budget', budget: 'month', unit: 'Currency', window: 'Month', onExceeded: 'Block', owner: 'key' },
        ...{ amount: '25.00', used: '12.345678', held: '0.00', left: '12.654322', resetsAt: '2026-02-01T00:00:00Z' },
      },
      {
        ...{ limit: 'budget', budget: 'all', unit: 'Tokens', window: 'Lifetime', onExceeded: 'Audit', owner: 'key' },
        ...{ amount: 5, used: 9, held: 0, left: 0, resetsAt: null },
      },
    ])
  })

  test('answers 503 with a time to ask again while the limits cannot be checked, never a guess', async () => {
    await start()
    const key = front.issue({ limits: { requestsPerMinute: 5 }, onStoreUnavailable: 'LocalShare' })
    world.store.fate = () => 'never arrives'
    const away = await shown(key)
    expect([away.status, away.headers.get('retry-after'), away.json]).toMatchObject([503, '5', { error: { code: 'limits_unavailable' } }])
    world.store.fate = () => 'works'
    await world.advance(300)
    expect((await shown(key)).status).toBe(200)
    const unseeded = front.issue({ uid: 'new', budgets: [budget()] })
    expect((await shown(unseeded)).status).toBe(503)
  })

  test('answers a key that does not work as calls do', async () => {
    await start()
    expect(await shown(front.issue({ state: 'Suspended' }))).toMatchObject({ status: 401, json: { error: { code: 'invalid_api_key' } } })
  })
})
