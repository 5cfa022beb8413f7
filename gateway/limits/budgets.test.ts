import { describe, expect, test } from 'vitest'
import { budget, held, LedgerWorld, need, oneProcess, refused, subject, usage } from '../../test/support/ledger-world.ts'
import type { LeaseLedger } from './lease-ledger.ts'
import type { LimitSubject, Need } from './ledger.ts'

const costing = (micros: number): Need => need({ holdByUnit: { Currency: micros, Tokens: micros } })

async function spend(ledger: LeaseLedger, key: LimitSubject, costMicros: number, hold = costMicros): Promise<void> {
  ledger.settle(held(await ledger.reserve([key], costing(hold))), usage({ costMicros }))
}

async function spentAndHeld(ledger: LeaseLedger, key: LimitSubject): Promise<readonly [spent: number, held: number]> {
  const [first] = (await ledger.snapshot(key)).budgets
  return [first?.spent ?? 0, first?.held ?? 0]
}

const key = subject({ budgets: [budget({ amount: 1_000 })] })

describe('a budget that blocks', () => {
  test('#26672, #23714, #9658, #34732: of 200 parallel requests exactly those that fit pass, and no more than the amount is spent', async () => {
    const { world } = oneProcess()
    world.live = 2
    const ledgers = [world.process(), world.process()]
    const verdicts = await Promise.all(Array.from({ length: 200 }, async (_, at) => ledgers[at % 2]!.reserve([key], costing(30))))
    expect(verdicts.filter(({ outcome }) => outcome === 'held')).toHaveLength(33)
    verdicts.forEach((verdict, at) => verdict.outcome === 'held' && ledgers[at % 2]!.settle(verdict, usage({ costMicros: 30 })))
    await world.advance(3_000)
    expect(await spentAndHeld(ledgers[0]!, key)).toEqual([990, 0])
  })

  test('#40002: of five requests whose worst case is most of the budget one runs, and the others wait for its hold', async () => {
    const { ledger } = oneProcess()
    const verdicts = await Promise.all(Array.from({ length: 5 }, async () => ledger.reserve([key], costing(900))))
    expect(verdicts.map(({ outcome }) => outcome).toSorted()).toEqual(['held', 'refused', 'refused', 'refused', 'refused'])
    const refusal = refused(verdicts.find(({ outcome }) => outcome === 'refused')!)
    expect(refusal).toMatchObject({ limit: 'budgetHeld', whose: 'key', budget: { name: 'month' }, needed: 900, left: 100, waitMs: 5_000 })
  })

  test('a held budget is distinguished from a spent one, and a spent one refuses until its window ends, without a call', async () => {
    const { world, ledger } = oneProcess()
    const hold = held(await ledger.reserve([key], costing(1_000)))
    expect(refused(await ledger.reserve([key], costing(1))).limit).toBe('budgetHeld')
    ledger.settle(hold, usage({ costMicros: 1_000 }))
    await world.advance(300)
    const { limit, waitMs } = refused(await ledger.reserve([key], costing(1)))
    expect(limit).toBe('budgetSpent')
    expect(waitMs).toBe(Date.UTC(2026, 1, 1) - world.clock.now())
    const before = world.store.calls.length
    for (let i = 0; i < 50; i += 1) {
      expect(refused(await ledger.reserve([key], costing(1))).limit).toBe('budgetSpent')
      await world.advance(1_000)
    }
    expect(world.store.calls.length - before).toBeLessThan(3)
  })

  test('W6 a budget that seems spent through the holds of a process that seemed dead is asked about again', async () => {
    const { world, ledger: away } = oneProcess()
    const living = world.process()
    const hold = held(await away.reserve([key], costing(1_000)))
    world.store.reap('key-1', 'p1')
    expect(refused(await living.reserve([key], costing(1)))).toMatchObject({
      limit: 'budgetSpent',
      waitMs: Date.UTC(2026, 1, 1) - world.clock.now(),
    })
    away.settle(hold, usage({ costMicros: 10 }))
    await world.advance(4_000)
    held(await living.reserve([key], costing(1)))
  })

  test('a hold counts once, however often it is settled or released', async () => {
    const { world, ledger } = oneProcess()
    const hold = held(await ledger.reserve([key], costing(100)))
    ledger.settle(hold, usage({ costMicros: 70 }))
    ledger.settle(hold, usage({ costMicros: 70 }))
    ledger.release(hold)
    await world.advance(300)
    expect(await spentAndHeld(ledger, key)).toEqual([70, 0])
  })

  test('a request that costs more than its hold is counted in full', async () => {
    const { world, ledger } = oneProcess()
    await spend(ledger, key, 1_500, 100)
    await world.advance(300)
    expect(await spentAndHeld(ledger, key)).toEqual([1_500, 0])
    expect(refused(await ledger.reserve([key], costing(1))).limit).toBe('budgetSpent')
  })

  test('steady small requests are held in memory, and the float comes back when they end', async () => {
    const { world, ledger } = oneProcess()
    const rich = subject({ budgets: [budget({ amount: 100_000_000 })] })
    for (let i = 0; i < 500; i += 1) {
      await spend(ledger, rich, 7, 10)
      await world.advance(10)
    }
    expect(ledger.stats.waited).toBeLessThan(150)
    await world.advance(3_000)
    expect(await spentAndHeld(ledger, rich)).toEqual([3_500, 0])
  })

  test('requests that hold more than may be held ahead cost one call each', async () => {
    const { world, ledger } = oneProcess()
    const rich = subject({ budgets: [budget({ amount: 100_000_000_000 })] })
    for (let i = 0; i < 100; i += 1) {
      await spend(ledger, rich, 60_000, 90_000)
      await world.advance(10)
    }
    expect(ledger.stats.calls).toBeLessThanOrEqual(105)
  })

  test('#25874, #24770, #37923: a model without a price is refused, price 0 passes, and a token budget needs no price', async () => {
    const { ledger } = oneProcess()
    const unpriced = need({ holdByUnit: { Currency: undefined, Tokens: 10 } })
    expect(refused(await ledger.reserve([key], unpriced))).toMatchObject({ limit: 'unpriced', budget: { name: 'month' }, waitMs: 'never' })
    held(await ledger.reserve([key], need({ holdByUnit: { Currency: 0, Tokens: 10 } })))
    const tokens = subject({ budgets: [budget({ unit: 'Tokens', amount: 100 })] })
    ledger.settle(held(await ledger.reserve([tokens], unpriced)), usage({ inputTokens: 40, outputTokens: 60, costMicros: undefined }))
    expect(refused(await ledger.reserve([tokens], unpriced)).limit).toMatch(/^budget/)
  })

  test('a budget without a seed is unavailable, and nothing else is', async () => {
    const world = new LedgerWorld()
    const ledger = world.process()
    expect(await ledger.reserve([key], costing(1))).toMatchObject({ outcome: 'unavailable', reason: 'unseeded' })
    held(await ledger.reserve([subject({ uid: 'key-2', limits: { requestsPerMinute: 5 } })], costing(1)))
    world.memory.seed('key-1', 'seed-1', [[`month:Currency:Month:${Date.UTC(2026, 0, 1)}`, 995]])
    await world.advance(300)
    expect(refused(await ledger.reserve([key], costing(6)))).toMatchObject({ limit: 'budgetTooSmall', needed: 6, left: 5 })
    held(await ledger.reserve([key], costing(5)))
  })
})

describe('a budget that audits', () => {
  const audited = subject({ budgets: [budget({ amount: 10, onExceeded: 'Audit' })] })

  test('refuses nothing, counts everything, and admits at once without a call', async () => {
    const { world, ledger } = oneProcess()
    for (let i = 0; i < 5; i += 1) {
      const verdict = ledger.reserve([audited], need({ holdByUnit: { Currency: undefined, Tokens: 0 } }))
      expect(verdict).not.toBeInstanceOf(Promise)
      ledger.settle(held(await verdict), usage({ costMicros: 7 }))
    }
    await world.advance(300)
    expect(await spentAndHeld(ledger, audited)).toEqual([35, 0])
  })
})

describe('windows of budgets', () => {
  test('#29358: a new window opens at its instant without a reset, and the old one keeps its spend', async () => {
    const world = new LedgerWorld(undefined, Date.UTC(2026, 0, 31, 23, 59, 55))
    world.memory.seed('key-1', 'seed-1')
    const ledger = world.process()
    const late = held(await ledger.reserve([key], costing(1_000)))
    expect((await ledger.reserve([key], costing(1_000))).outcome).toBe('refused')
    await world.advance(6_000)
    held(await ledger.reserve([key], costing(1_000)))
    ledger.settle(late, usage({ costMicros: 400 }))
    await world.advance(500)
    const spent = Object.fromEntries(world.memory.checkpoint('key-1'))
    expect(spent[`month:Currency:Month:${Date.UTC(2026, 0, 1)}`]).toBe(400)
    expect(spent[`month:Currency:Month:${Date.UTC(2026, 1, 1)}`]).toBe(0)
  })

  test('langwatch#6255: a steady load is charged to the window of each admission, to the millisecond', async () => {
    const midnight = Date.UTC(2026, 1, 1)
    const world = new LedgerWorld(undefined, midnight - 3_120) // between two flushes
    world.memory.seed('key-1', 'seed-1')
    const ledger = world.process()
    const rich = subject({ budgets: [budget({ amount: 1_000_000 })] })
    const spent = { before: 0, after: 0 }
    for (let i = 0; i < 1_000; i += 1) {
      const hold = held(await ledger.reserve([rich], costing(5)))
      spent[world.clock.now() < midnight ? 'before' : 'after'] += 5
      ledger.settle(hold, usage({ costMicros: 5 }))
      await world.advance(5)
    }
    await world.advance(6_000)
    expect(world.memory.checkpoint('key-1').map(([, amount]) => amount)).toEqual([spent.before, spent.after])
  })

  test("a process whose wall clock is wrong uses the store's window", async () => {
    const world = new LedgerWorld(undefined, Date.UTC(2026, 0, 31, 12))
    world.memory.seed('key-1', 'seed-1')
    const skewed = world.process({ skewMs: 3 * 86_400_000 })
    held(await skewed.reserve([key], costing(1_000)))
    await world.advance(300)
    expect(world.memory.checkpoint('key-1').map(([field]) => field)).toEqual([`month:Currency:Month:${Date.UTC(2026, 0, 1)}`])
  })
})

describe('what is settled', () => {
  test.each([NaN, Infinity, -1, 1e19, 0.5])('litellm-rs#711: a cost of %s counts as the whole hold', async (costMicros) => {
    const { world, ledger } = oneProcess()
    await spend(ledger, key, costMicros, 250)
    await world.advance(300)
    expect(await spentAndHeld(ledger, key)).toEqual([250, 0])
  })

  test.each([NaN, Infinity, -1, 1e19, 0.5])('a need of %s is answered as unavailable, and nothing is held', (tokens) => {
    expect(oneProcess().ledger.reserve([key], need({ tokens }))).toMatchObject({ outcome: 'unavailable', reason: 'need' })
  })
})
