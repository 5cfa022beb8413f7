/** Failures of other gateways, by the number of their issue. The tests of endings, routes and headers are beside their code. */
import { describe, expect, test } from 'vitest'
import { budget, held, LedgerWorld, need, refused, subject, usage } from '../../test/support/ledger-world.ts'
import type { LeaseLedger } from './lease-ledger.ts'
import type { Hold, LimitSubject, Need, RefusedLimit } from './ledger.ts'

const small: Need = need({ tokens: 10, certainTokens: 1, holdByUnit: { Currency: 10, Tokens: 10 } })

/** A limit of each kind with room for three small requests, and how the fourth is refused. */
const FIELDS: ReadonlyArray<readonly [RefusedLimit, Partial<LimitSubject>]> = [
  ['requests', { limits: { requestsPerMinute: 3 } }],
  ['tokens', { limits: { tokensPerMinute: 35 } }],
  ['concurrency', { limits: { maxConcurrentRequests: 3 } }],
  ['budgetHeld', { budgets: [budget({ amount: 35 })] }],
  ['budgetHeld', { budgets: [budget({ unit: 'Tokens', amount: 35 })] }],
]

function seeded(): LedgerWorld {
  const world = new LedgerWorld()
  for (const uid of ['key-1', 'key-2']) world.memory.seed(uid, 'seed-1')
  return world
}

async function admitted(ledger: LeaseLedger, key: LimitSubject, demand: Need, requests: number): Promise<Hold[]> {
  const verdicts = await Promise.all(Array.from({ length: requests }, async () => ledger.reserve([key], demand)))
  return verdicts.filter((verdict): verdict is Hold => verdict.outcome === 'held')
}

describe('higress#4067, LLMKube#631, Envoy AI Gateway #2460: no field of a limit is ignored', () => {
  test.each(FIELDS)('%s of %j', async (limit, limited) => {
    const ledger = seeded().process()
    const key = subject(limited)
    expect(await admitted(ledger, key, small, 3)).toHaveLength(3)
    expect(refused(await ledger.reserve([key], small)).limit).toBe(limit)
  })

  test.each(['Day', 'Week', 'Month', 'Lifetime'] as const)('window %s of a budget', async (window) => {
    const world = seeded()
    const ledger = world.process()
    const key = subject({ budgets: [budget({ window, amount: 10 })] })
    ledger.settle(held(await ledger.reserve([key], small)), usage({ costMicros: 10 }))
    await world.advance(300)
    const { waitMs } = refused(await ledger.reserve([key], small))
    const DAYS = { Day: 0.5, Week: 4.5, Month: 17.5, Lifetime: undefined }[window] // the world begins at noon of Wednesday, 14 January
    expect(waitMs).toEqual(DAYS === undefined ? 'never' : expect.closeTo(DAYS * 86_400_000, -4))
  })
})

test('limitador#513: the strictest of several limits applies, whichever it is', async () => {
  const limits = { requestsPerMinute: 3, tokensPerMinute: 35, maxConcurrentRequests: 3 }
  for (const loose of ['requestsPerMinute', 'tokensPerMinute', 'maxConcurrentRequests'] as const) {
    const ledger = seeded().process()
    const key = subject({
      limits: { requestsPerMinute: 9_999, tokensPerMinute: 99_999, maxConcurrentRequests: 9_999, [loose]: limits[loose] },
    })
    expect(await admitted(ledger, key, small, 20)).toHaveLength(3)
  }
})

describe('#39309, APISIX#12896: a refusal consumes nothing', () => {
  const roomy = {
    limits: { requestsPerMinute: 100, tokensPerMinute: 1_000, maxConcurrentRequests: 100 },
    budgets: [budget({ name: 'money', amount: 1_000 }), budget({ name: 'tokens', unit: 'Tokens', amount: 1_000 })],
  }

  /** All counters of a subject at rest. */
  async function counters(world: LedgerWorld, uid: string): Promise<unknown> {
    await world.advance(300)
    const reader = world.process()
    const reading = reader.snapshot(subject({ uid, ...roomy }))
    await world.advance(1)
    const { requests, tokens, concurrency, budgets } = await reading
    return [requests?.remaining, tokens?.remaining, concurrency, budgets.map(({ spent, held: holding }) => [spent, holding])]
  }

  test.each<readonly [RefusedLimit, Partial<LimitSubject>, Need]>([
    ['requests', { limits: { ...roomy.limits, requestsPerMinute: 1 } }, small],
    ['tokens', { limits: { ...roomy.limits, tokensPerMinute: 10 } }, small],
    ['concurrency', { limits: { ...roomy.limits, maxConcurrentRequests: 1 } }, small],
    ['budgetHeld', { budgets: [budget({ name: 'money', amount: 15 }), roomy.budgets[1]!] }, small],
    ['budgetHeld', { budgets: [roomy.budgets[0]!, budget({ name: 'tokens', unit: 'Tokens', amount: 15 })] }, small],
    ['unpriced', {}, need({ tokens: 10, holdByUnit: { Currency: undefined, Tokens: 10 } })],
    ['tooLarge', {}, need({ tokens: 5_000, certainTokens: 5_000, holdByUnit: { Currency: 10, Tokens: 10 } })],
  ])('%s: no counter of the key or of another one changes', async (limit, limited, demand) => {
    const world = seeded()
    const ledger = world.process()
    const key = subject({ ...roomy, ...limited })
    held(await ledger.reserve([key], small))
    held(await ledger.reserve([subject({ uid: 'key-2', ...roomy })], small))
    const before = [await counters(world, 'key-1'), await counters(world, 'key-2')]
    for (let i = 0; i < 5; i += 1) {
      expect(refused(await ledger.reserve([key], demand)).limit).toBe(limit)
      await world.advance(300)
    }
    expect([await counters(world, 'key-1'), await counters(world, 'key-2')]).toEqual(before)
  })
})

describe('#5764, #27748, #14144, #37000: a refusal helps its reader', () => {
  test.each(FIELDS.slice(0, 2))('%s: a retry at the named time passes, and the refusal shows the rest', async (limit, limited) => {
    const world = seeded()
    const ledger = world.process()
    const key = subject(limited)
    await admitted(ledger, key, small, 3)
    const { waitMs, whose, rates } = refused(await ledger.reserve([key], small))
    expect(whose).toBe('key')
    expect((limit === 'requests' ? rates.requests : rates.tokens)?.remaining).toBeLessThan(10)
    await world.advance(Number(waitMs) - 1)
    expect(refused(await ledger.reserve([key], small)).limit).toBe(limit)
    await world.advance(1)
    expect(await admitted(ledger, key, small, 1)).toHaveLength(1)
  })

  test('a retry after the return of a permit or a hold passes', async () => {
    for (const [, limited] of FIELDS.slice(2)) {
      const world = seeded()
      const ledger = world.process()
      const key = subject(limited)
      const [hold] = await admitted(ledger, key, small, 3)
      const { waitMs } = refused(await ledger.reserve([key], small))
      ledger.settle(hold!, usage())
      await world.advance(Number(waitMs))
      held(await ledger.reserve([key], small))
    }
  })
})
