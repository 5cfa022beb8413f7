import { describe, expect, test } from 'vitest'
import { modelRecord } from '../../test/support/front-gateway.ts'
import { budget, LedgerWorld, subject } from '../../test/support/ledger-world.ts'
import { promptSize } from '../dialects/prompt-size.ts'
import { chatCompletions } from '../dialects/chat-completions.ts'
import { errorBody } from '../dialects/dialect.ts'
import { declared } from '../dialects/request-shape.ts'
import { type ErrorFormat, errorMessage, GatewayError, type RowID } from '../errors.ts'
import type { ModelRecord } from '#contract/records/model-record.ts'
import { halvesOf } from '#contract/values/signed-micros.ts'
import { CallLimits, type HeldCall } from './call-limits.ts'
import type { Ledger, LimitSubject, Refused } from './ledger.ts'

const NOW = Date.UTC(2026, 10, 21)
/** A millionth of a unit for each token. */
const PRICED = { pricing: { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000, cachedInputPerMillion: 0 } }
const USED = { inputTokens: 10, cachedInputTokens: 4, outputTokens: 30, isEstimated: false }

interface Ask {
  readonly limits?: LimitSubject['limits']
  readonly budgets?: LimitSubject['budgets']
  readonly fields?: object
  readonly model?: Partial<ModelRecord>
  readonly format?: ErrorFormat
}

function callOf({ limits = {}, budgets = [], fields = {}, model = {}, format = 'openai' }: Ask) {
  const body = { model: 'llama', messages: [{ role: 'user', content: 'Good morning!' }], ...fields }
  const asked = { model: 'llama', stream: false, ...declared(body, chatCompletions) }
  const size = promptSize(body, JSON.stringify(body).length)
  const owner = subject({ limits, budgets })
  return { uid: owner.uid, subjects: [owner], model: modelRecord('llama', model), asked, size, format }
}

const over = (ledger: Ledger): CallLimits =>
  new CallLimits({ ledger, clock: { now: () => NOW, monotonic: () => 0 }, tokenHold: 'Declared' })

async function reserved(limits: CallLimits, ask: Ask): Promise<HeldCall> {
  const decision = await limits.reserve(callOf(ask))
  if (decision instanceof GatewayError) throw decision
  return decision
}

async function row(limits: CallLimits, ask: Ask): Promise<RowID | 'held'> {
  const decision = await limits.reserve(callOf(ask))
  return decision instanceof GatewayError ? decision.row.id : 'held'
}

const remaining = (held: HeldCall, kind: string): number => {
  const at = held.answerHeaders.indexOf(`x-ratelimit-remaining-${kind}`)
  return Number(held.answerHeaders[at + 1])
}

describe('the limits of a call', () => {
  test('a call for several answers without a cap holds so many times what one answer usually has', async () => {
    const limits = over(new LedgerWorld().process())
    const ask = { limits: { tokensPerMinute: 1_000_000 }, fields: { n: 8 } }
    const [held, one] = [await reserved(limits, ask), 1_000]
    held.settle({ usage: { ...USED, outputTokens: 8 * one }, wasSent: true, error: undefined })
    expect((await reserved(limits, ask)).outputTokens).toBe(8 * one)
    expect((await reserved(limits, { ...ask, fields: {} })).outputTokens).toBe(one)
  })

  test('#18730 a call holds its prompt and all of the output that it declares, and is charged what it has used', async () => {
    const world = new LedgerWorld()
    const limits = over(world.process())
    const ask = { limits: { tokensPerMinute: 1_000 }, fields: { max_tokens: 500 } }
    const first = await reserved(limits, ask)
    expect(remaining(first, 'tokens')).toBeLessThan(500)
    expect(await row(limits, ask), 'running calls hold theirs').toBe('tokensLimited')
    first.settle({ usage: USED, wasSent: true, error: undefined })
    const second = await reserved(limits, ask)
    expect(remaining(second, 'tokens')).toBeGreaterThan(400)
  })

  test('a call that has reached no backend is charged nothing, and one whose backend did no work is charged the request', async () => {
    const world = new LedgerWorld()
    const limits = over(world.process())
    const ask = { limits: { requestsPerMinute: 2 } }
    const unserved = await reserved(limits, ask)
    unserved.settle({ usage: undefined, wasSent: false, error: new GatewayError('noBackend', { model: 'llama' }) })
    const left = await reserved(limits, ask)
    left.settle({ usage: undefined, wasSent: false, error: undefined })
    const failed = await reserved(limits, ask)
    failed.settle({ usage: undefined, wasSent: false, error: new GatewayError('backendError') })
    await reserved(limits, ask)
    expect(await row(limits, ask)).toBe('requestsLimited')
  })

  test('money is held at the worst case without a discount, and charged at the prices of the model', async () => {
    const world = new LedgerWorld()
    const month = budget({ amount: 2_000 })
    world.memory.seed('key-1', 'seed')
    const limits = over(world.process())
    const ask = { budgets: [month], fields: { max_tokens: 1_000 }, model: PRICED }
    const held = await reserved(limits, ask)
    expect(await row(limits, ask), 'the rest is held, not spent').toBe('budgetHeld')
    held.settle({ usage: USED, wasSent: true, error: undefined })
    await world.advance(6_000)
    const { budgets } = await world.process().snapshot(subject({ budgets: [month] }))
    expect(budgets[0]).toMatchObject({ spent: 36 })
  })

  test('a price per call is held and charged once for each call that a server has worked on, and for no other', async () => {
    const world = new LedgerWorld()
    const all = budget({ amount: 100_000 })
    world.memory.seed('key-1', 'seed')
    const limits = over(world.process())
    const pricing = { inputPerMillion: 0, outputPerMillion: 0, cachedInputPerMillion: 0, perRequest: 40_000 }
    const ask = { budgets: [all], fields: { max_tokens: 1_000 }, model: { pricing } }
    const [worked, failed] = [await reserved(limits, ask), await reserved(limits, ask)]
    expect(await row(limits, ask), 'two calls hold 80,000 of 100,000').toBe('budgetHeld')
    failed.settle({ usage: undefined, wasSent: false, error: new GatewayError('backendError') })
    worked.settle({ usage: { ...USED, isEstimated: true }, wasSent: true, error: new GatewayError('streamBroken') })
    await world.advance(6_000)
    const unserved = await reserved(limits, ask)
    unserved.settle({ usage: undefined, wasSent: false, error: new GatewayError('noBackend', { model: 'llama' }) })
    await world.advance(6_000)
    const lost = await reserved(limits, ask)
    lost.settleUnknown()
    await world.advance(6_000)
    const { budgets } = await world.process().snapshot(subject({ budgets: [all] }))
    expect(budgets[0], 'the call that worked, and the one whose outcome is unknown').toMatchObject({ spent: 80_000 })
  })

  test('a call holds the highest of the three prices of a prompt, since a server may read all of it from its cache, or write all of it', async () => {
    const prices = { inputPerMillion: 1_000_000, cachedInputPerMillion: 1_000_000, outputPerMillion: 1_000_000 }
    const rowAt = async (pricing: ModelRecord['pricing'], amount: number): Promise<RowID | 'held'> => {
      const world = new LedgerWorld()
      world.memory.seed('key-1', 'seed')
      const ask = { budgets: [budget({ amount })], fields: { max_tokens: 1 }, model: { pricing } }
      return row(over(world.process()), ask)
    }
    const size = promptSize({ messages: [{ role: 'user', content: 'Good morning!' }] }, 200).maxTokens
    for (const name of ['inputPerMillion', 'cachedInputPerMillion', 'cacheWritePerMillion'] as const) {
      const dear = { ...prices, [name]: 3_000_000 }
      expect(await rowAt(dear, 3 * size), name).toBe('held')
      expect(await rowAt(dear, size), name).toBe('budgetTooSmall')
    }
    expect(await rowAt(prices, size)).toBe('held')
  })

  test('L5 W4 absurd usage that one model reports does not free the limit for another one, nor end the calls of the key', async () => {
    const world = new LedgerWorld()
    world.memory.seed('key-1', 'seed-1')
    const limits = over(world.process())
    const ask = { limits: { tokensPerMinute: 2_000 }, budgets: [budget({ amount: 1_000_000_000 })], fields: { max_tokens: 100 } }
    const hostile = { ...ask, model: { uid: 'hostile', ...PRICED } }
    for (let call = 0; call < 3; call += 1) {
      const held = await limits.reserve(callOf(hostile))
      if (!(held instanceof GatewayError)) held.settle({ usage: { ...USED, outputTokens: 5e15 }, wasSent: true, error: undefined })
      await world.advance(300)
    }
    let admitted = 0
    for (let second = 0; second < 58; second += 1) {
      if ((await row(limits, { ...ask, model: PRICED })) === 'held') admitted += 1
      await world.advance(1_000)
    }
    expect(admitted * 100).toBeLessThanOrEqual(2_000)
    await world.advance(180_000)
    expect(await row(limits, { ...ask, model: PRICED }), 'the excess is repaid').toBe('held')
    const [spent] = (await world.process().snapshot(callOf(ask).subjects[0]!)).budgets
    expect(spent?.spent).toBeLessThan(10_000)
  })

  test('#25874 a model without a price is refused to a budget of money, and "0" is a price', async () => {
    const world = new LedgerWorld()
    world.memory.seed('key-1', 'seed')
    const limits = over(world.process())
    const free = { pricing: { inputPerMillion: 0, outputPerMillion: 0, cachedInputPerMillion: 0 } }
    expect(await row(limits, { budgets: [budget()] })).toBe('noPrice')
    expect(await row(limits, { budgets: [budget()], model: free })).toBe('held')
    expect(await row(limits, { budgets: [budget({ unit: 'Tokens' })] })).toBe('held')
  })
})

/** A refusal in the tests below, which replace fields of it. */
const REFUSED: Refused = {
  ...{ outcome: 'refused', limit: 'requests', whose: 'key', needed: 1, left: 0, waitMs: 1_000, resetMs: undefined, rates: {} },
}

/** The balance of an account names no amount. */
const OF_BALANCE = { whose: 'account', needed: undefined, left: undefined } as const

test.each<[Pick<Refused, 'limit' | 'waitMs'> & Partial<Refused>, RowID, number | undefined, string]>([
  [
    { limit: 'requests', waitMs: 7_350 },
    'requestsLimited',
    7_350,
    'Rate limit reached: requests per minute of this key. Please try again in 7.4s.',
  ],
  [
    { limit: 'tokens', waitMs: 99_000 },
    'tokensLimited',
    60_000,
    'Rate limit reached: tokens per minute of this key; a smaller max_tokens holds fewer of them. Please try again in 99s.',
  ],
  [
    { limit: 'concurrency', waitMs: 5_000 },
    'concurrencyLimited',
    5_000,
    'Rate limit reached: concurrent requests of this key. Please try again in 5s.',
  ],
  [
    { limit: 'budgetHeld', waitMs: 5_000, budget: { name: 'month', unit: 'Currency' } },
    'budgetHeld',
    5_000,
    'Budget is held by running requests: budget "month" of this key. Please try again in 5s.',
  ],
  [
    { limit: 'budgetSpent', waitMs: 86_400_000, resetMs: 86_400_000, budget: { name: 'day', unit: 'Currency' } },
    'budgetSpent',
    undefined,
    'Budget exhausted: budget "day" of this key; its next window begins at 2026-11-22T00:00:00Z',
  ],
  [
    { limit: 'budgetSpent', waitMs: 'never', resetMs: Infinity, budget: { name: 'ever', unit: 'Currency' } },
    'budgetSpent',
    undefined,
    'Budget exhausted: budget "ever" of this key; this budget never resets; its amount must be raised',
  ],
  [
    { limit: 'budgetTooSmall', waitMs: 'never', resetMs: Infinity, budget: { name: 'ever', unit: 'Tokens' }, needed: 2_130, left: 1_184 },
    'budgetTooSmall',
    undefined,
    'This call does not fit the budget: budget "ever" of this key has 1,184 tokens left, and this call may use 2,130; lower max_tokens or shorten the prompt',
  ],
  [
    { limit: 'budgetTooSmall', waitMs: 1, resetMs: 86_400_000, budget: { name: 'day', unit: 'Currency' }, needed: 420_000, left: 100_000 },
    'budgetTooSmall',
    undefined,
    'This call does not fit the budget: budget "day" of this key has 0.10 left until 2026-11-22T00:00:00Z, and this call may cost 0.42; lower max_tokens or shorten the prompt',
  ],
  [
    {
      limit: 'budgetTooSmall',
      waitMs: 'never',
      whose: 'account',
      budget: { name: 'ever', unit: 'Currency' },
      needed: 420_000,
      left: 100_000,
    },
    'budgetTooSmall',
    undefined,
    'This call does not fit the budget: budget "ever" of this account has less left than this call may cost; lower max_tokens or shorten the prompt',
  ],
  [
    { limit: 'unpriced', waitMs: 'never', budget: { name: 'month', unit: 'Currency' } },
    'noPrice',
    undefined,
    'Budget cannot be enforced: model llama has no price',
  ],
  [{ ...OF_BALANCE, limit: 'balanceExhausted', waitMs: 'never' }, 'balanceExhausted', undefined, 'Balance exhausted'],
  [
    { ...OF_BALANCE, limit: 'balanceTooSmall', waitMs: 'never' },
    'balanceTooSmall',
    undefined,
    'This call does not fit the balance of its account; lower max_tokens or shorten the prompt',
  ],
  [
    { ...OF_BALANCE, limit: 'balanceHeld', waitMs: 5_000 },
    'budgetHeld',
    5_000,
    'Budget is held by running requests: the balance of the account of this key. Please try again in 5s.',
  ],
  [{ ...OF_BALANCE, limit: 'unpriced', waitMs: 'never' }, 'noPrice', undefined, 'Budget cannot be enforced: model llama has no price'],
  [
    { limit: 'tooLarge', waitMs: 'never', needed: 5_000, left: 1_000 },
    'requestTooLarge',
    undefined,
    'Request too large for the tokens-per-minute limit of this key',
  ],
])('#5764 %j names the limit and its owner', async (refused, id, retryAfterMs, message) => {
  const verdict: Refused = { ...REFUSED, ...refused }
  const ledger = { reserve: () => verdict } as unknown as Ledger
  const decision = await over(ledger).reserve(callOf({}))
  if (!(decision instanceof GatewayError)) throw new TypeError('not refused')
  const { row, params } = decision
  expect([row.id, errorMessage(row, params, 'openai'), decision.retryAfterMs]).toEqual([id, message, retryAfterMs])
})

test('#33923 a ledger that cannot answer is a failure of the gateway: 503, never 401 or 429', async () => {
  const ledger = { reserve: () => ({ outcome: 'unavailable', reason: 'store', waitMs: 1_000 }) } as unknown as Ledger
  expect(await row(over(ledger), {})).toBe('limitsUnavailable')
})

describe('error.metadata of a refusal', () => {
  const detailsOf = async (refused: Partial<Refused>): Promise<unknown> => {
    const ledger = { reserve: () => ({ ...REFUSED, ...refused }) } as unknown as Ledger
    const decision = await over(ledger).reserve(callOf({}))
    if (!(decision instanceof GatewayError)) throw new TypeError('not refused')
    const [openai, anthropic] = (['openai', 'anthropic'] as const).map((format) => JSON.parse(errorBody(format, decision, 'req_1')))
    expect(openai.error.metadata).toEqual(anthropic.error.metadata)
    return openai.error.metadata
  }

  test('names the limit, its owner, the need, the rest and the time at which the limit is whole again', async () => {
    expect(await detailsOf({ limit: 'tokens', needed: 900, left: 30, waitMs: 7_000, resetMs: 60_000 })).toEqual({
      ...{ limit: 'tokens_per_minute', owner: 'key', needed: 900, left: 30, resetsAt: '2026-11-21T00:01:00Z' },
    })
    expect(await detailsOf({ limit: 'concurrency', whose: 'plan', needed: 1, left: 0 })).toEqual({
      ...{ limit: 'concurrent_requests', owner: 'plan', needed: 1, left: 0, resetsAt: null },
    })
    expect(
      await detailsOf({ limit: 'budgetSpent', budget: { name: 'all', unit: 'Tokens' }, needed: 9, left: 0, resetMs: Infinity }),
    ).toEqual({
      ...{ limit: 'budget', budget: 'all', unit: 'Tokens', owner: 'key', needed: 9, left: 0, resetsAt: null },
    })
  })

  test('shows money of the key in decimals, and no money of an account or a plan', async () => {
    const budget = { name: 'month', unit: 'Currency' } as const
    const spent = { limit: 'budgetTooSmall', budget, needed: 420_000, left: 100_000 } as const
    expect(await detailsOf(spent)).toMatchObject({ owner: 'key', needed: '0.42', left: '0.10' })
    for (const whose of ['account', 'plan'] as const)
      expect(await detailsOf({ ...spent, whose })).toMatchObject({ owner: whose, needed: null, left: null })
  })
})

describe('a prepaid account', () => {
  const prepaid = (credits: bigint): LimitSubject =>
    subject({ uid: 'account-1', whose: 'account', balance: { credits: halvesOf(credits) } })
  const ask = { fields: { max_tokens: 1_000 }, model: PRICED }

  /** The refusal of a call, in both formats, with its headers. */
  async function refusedBy(
    credits: bigint,
    hold?: bigint,
  ): Promise<{ readonly id: RowID; readonly error: GatewayError; readonly text: string }> {
    const world = new LedgerWorld()
    const books = { openFrom: 0, closedSpend: 0n, spent: new Map<string, number>() }
    world.memory.mergeBalances([{ name: 'account-1', books, isReady: true }])
    const limits = over(world.process())
    if (hold !== undefined) await limits.reserve({ ...callOf(ask), subjects: [prepaid(hold)] })
    const error = await limits.reserve({ ...callOf(ask), subjects: [prepaid(credits)] })
    if (!(error instanceof GatewayError)) throw new TypeError('not refused')
    const bodies = (['openai', 'anthropic'] as const).map((format) => errorBody(format, error, 'req_x'))
    return { id: error.row.id, error, text: [...bodies, ...error.headers].join(' ') }
  }

  test.each<[what: string, credits: bigint, hold: bigint | undefined, id: RowID]>([
    ['a used-up balance', 0n, undefined, 'balanceExhausted'],
    ['a negative balance', -1n, undefined, 'balanceExhausted'],
    ['a balance below the worst case of the call', 7n, undefined, 'balanceTooSmall'],
    ['a balance that running requests hold', 2_000n, 2_000n, 'budgetHeld'],
  ])('%s: the refusal names the balance and its owner, and no amount', async (_, credits, hold, id) => {
    const { id: row, error, text } = await refusedBy(credits, hold)
    expect(row).toBe(id)
    expect(error.metadata).toEqual({ limit: 'balance', owner: 'account', needed: null, left: null, resetsAt: null })
    expect(text.replaceAll('again in 5s', '')).not.toMatch(/\d/)
  })

  test('no retry is asked for where only money helps', async () => {
    for (const credits of [0n, 7n]) {
      const { error } = await refusedBy(credits)
      expect([error.row.noRetry, error.retryAfterMs, error.row.status.openai, error.headers]).toEqual([true, undefined, 402, []])
      expect([error.row.openai.type, error.row.openai.code, error.row.anthropic]).toEqual([
        'insufficient_quota',
        'insufficient_quota',
        'billing_error',
      ])
    }
    const { error } = await refusedBy(2_000n, 2_000n)
    expect([error.row.number, error.retryAfterMs]).toEqual([36, 5_000])
  })
})

test('an untouched budget that is smaller than the worst case of a call is not called exhausted', async () => {
  const world = new LedgerWorld()
  world.memory.seed('key-1', 'seed')
  const limits = over(world.process())
  const ask = { budgets: [budget({ unit: 'Tokens', amount: 500 })], fields: { max_tokens: 1_000 } }
  expect(await row(limits, ask)).toBe('budgetTooSmall')
  expect(await row(limits, { ...ask, fields: { max_tokens: 300 } }), 'a smaller call passes at once').toBe('held')
  expect(await row(limits, { ...ask, fields: { max_tokens: 300 } }), 'its hold may come back').toBe('budgetHeld')
})
