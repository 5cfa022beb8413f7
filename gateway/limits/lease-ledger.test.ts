import { describe, expect, test } from 'vitest'
import { budget, held, LedgerWorld, need, oneProcess, refused, subject, usage } from '../../test/support/ledger-world.ts'
import type { LeaseLedger } from './lease-ledger.ts'
import type { Hold, Verdict } from './ledger.ts'

describe('requests per minute', () => {
  const limited = subject({ limits: { requestsPerMinute: 10 } })

  test('of many parallel requests exactly the limit passes, and the others are refused with a wait after which they pass', async () => {
    const { world, ledger } = oneProcess()
    const verdicts = await Promise.all(Array.from({ length: 30 }, async () => ledger.reserve([limited], need())))
    expect(verdicts.filter(({ outcome }) => outcome === 'held')).toHaveLength(10)
    const { limit, whose, waitMs } = refused(verdicts[29]!)
    expect([limit, whose]).toEqual(['requests', 'key'])
    expect(waitMs).toBeGreaterThan(59_000)
    await world.advance(Number(waitMs) - 2)
    expect(refused(await ledger.reserve([limited], need())).limit).toBe('requests')
    await world.advance(2)
    held(await ledger.reserve([limited], need()))
  })

  test('a storm of refused requests makes no call to the store', async () => {
    const { world, ledger } = oneProcess()
    await Promise.all(Array.from({ length: 20 }, async () => ledger.reserve([limited], need())))
    await world.advance(300)
    const before = world.store.calls.length
    for (let i = 0; i < 1_000; i += 1) {
      const verdict = ledger.reserve([limited], need())
      expect(verdict).not.toBeInstanceOf(Promise)
    }
    await world.advance(10_000)
    expect(world.store.calls.length - before).toBeLessThan(3)
  })

  test('a steady load is decided in memory: fewer than 2 calls per 100 requests', async () => {
    const { world, ledger } = oneProcess()
    const busy = subject({ limits: { requestsPerMinute: 60_000 } })
    for (let i = 0; i < 3_000; i += 1) {
      ledger.settle(held(await ledger.reserve([busy], need())), usage())
      await world.advance(i % 2 ? 10 : 0)
    }
    expect(ledger.stats.waited).toBeLessThan(3_000 * 0.02)
  })

  test('a request every two seconds is decided in memory most of the time while half of its limits is free', async () => {
    const { world, ledger } = oneProcess()
    const slow = subject({
      limits: { requestsPerMinute: 600, tokensPerMinute: 100_000 },
      budgets: [budget({ amount: 100_000_000 })],
    })
    for (let i = 0; i < 100; i += 1) {
      ledger.settle(
        held(await ledger.reserve([slow], need({ tokens: 100, holdByUnit: { Currency: 900, Tokens: 0 } }))),
        usage({ costMicros: 100 }),
      )
      await world.advance(2_000)
    }
    expect(ledger.stats.waited).toBeLessThan(40)
    await world.advance(70_000)
    expect(await ledger.snapshot(slow)).toMatchObject({ requests: { remaining: 600 }, budgets: [{ held: 0, spent: 10_000 }] })
  })

  test('a client with a request every two seconds gets no lease from the last half of a limit', async () => {
    const world = new LedgerWorld()
    const ledgers = [world.process(), world.process()]
    const tight = subject({ limits: { requestsPerMinute: 30 } })
    let admitted = 0
    for (let i = 0; i < 60; i += 1) {
      const { outcome } = await ledgers[i % 2]!.reserve([tight], need())
      if (outcome === 'held') admitted += 1
      await world.advance(1_000)
    }
    expect(admitted).toBeGreaterThanOrEqual(30)
    expect(admitted).toBeLessThanOrEqual(31)
  })

  test('a released request gives its unit back at once', async () => {
    const { ledger } = oneProcess()
    const one = subject({ limits: { requestsPerMinute: 1 } })
    const hold = held(await ledger.reserve([one], need()))
    expect(refused(await ledger.reserve([one], need())).limit).toBe('requests')
    ledger.release(hold)
    ledger.release(hold)
    ledger.settle(hold, usage())
    held(await ledger.reserve([one], need()))
    expect((await ledger.reserve([one], need())).outcome).toBe('refused')
  })

  test('a subject without limits and budgets makes no call', async () => {
    const { world, ledger } = oneProcess()
    for (let i = 0; i < 100; i += 1) held(ledger.reserve([subject()], need()) as Verdict)
    await world.advance(1_000)
    expect(world.store.calls).toHaveLength(0)
  })
})

describe('tokens per minute', () => {
  test('#18730: of 50 parallel requests of 20 tokens, 5 pass a limit of 100, and use beyond the hold is repaid', async () => {
    const { world, ledger } = oneProcess()
    const key = subject({ limits: { tokensPerMinute: 100 } })
    const verdicts = await Promise.all(Array.from({ length: 50 }, async () => ledger.reserve([key], need({ tokens: 20 }))))
    const holds = verdicts.filter((verdict): verdict is Hold => verdict.outcome === 'held')
    expect(holds).toHaveLength(5)
    for (const hold of holds) ledger.settle(hold, usage({ inputTokens: 10, outputTokens: 30 }))
    await world.advance(300)
    expect(world.memory.booked('key-1').rates.t.total).toBe(200)
    await world.advance(59_000)
    expect(refused(await ledger.reserve([key], need({ tokens: 1 }))).limit).toBe('tokens')
    await world.advance(3_000)
    held(await ledger.reserve([key], need({ tokens: 1 })))
  })

  test('#28805, #29191: a limit of 50 is usable by a request that asks for more, and again after its minute', async () => {
    const { world, ledger } = oneProcess()
    const key = subject({ limits: { tokensPerMinute: 50 } })
    ledger.settle(held(await ledger.reserve([key], need({ tokens: 4_000 }))), usage({ inputTokens: 20, outputTokens: 10 }))
    held(await ledger.reserve([key], need({ tokens: 20 })))
    const { waitMs } = refused(await ledger.reserve([key], need({ tokens: 4_000 })))
    await world.advance(Number(waitMs))
    held(await ledger.reserve([key], need({ tokens: 4_000 })))
  })

  test('the unused part of a hold is free for the next request', async () => {
    const { world, ledger } = oneProcess()
    const key = subject({ limits: { tokensPerMinute: 100 } })
    ledger.settle(held(await ledger.reserve([key], need({ tokens: 100 }))), usage({ inputTokens: 10 }))
    await world.advance(300)
    held(await ledger.reserve([key], need({ tokens: 90 })))
    expect(refused(await ledger.reserve([key], need({ tokens: 1 }))).limit).toBe('tokens')
  })

  test('more tokens than a whole minute allows are refused permanently, without a call', () => {
    const world = new LedgerWorld()
    const key = subject({ limits: { tokensPerMinute: 50 } })
    const verdict = world.process().reserve([key], need({ tokens: 80, certainTokens: 60 }))
    expect(verdict).toMatchObject({ outcome: 'refused', limit: 'tooLarge', waitMs: 'never' })
    expect(world.store.calls).toHaveLength(0)
  })
})

describe('several limits', () => {
  test('#24677, #38523: requests and tokens have windows of their own, and the stricter limit applies', async () => {
    const { ledger } = oneProcess()
    const key = subject({ limits: { requestsPerMinute: 3, tokensPerMinute: 100 } })
    held(await ledger.reserve([key], need({ tokens: 90 })))
    expect(refused(await ledger.reserve([key], need({ tokens: 11 }))).limit).toBe('tokens')
    held(await ledger.reserve([key], need({ tokens: 5 })))
    held(await ledger.reserve([key], need({ tokens: 5 })))
    expect(refused(await ledger.reserve([key], need({ tokens: 0 }))).limit).toBe('requests')
  })

  test('#39309: a refusal by the account consumes nothing of the key', async () => {
    const { world, ledger } = oneProcess()
    const key = subject({ limits: { requestsPerMinute: 5, tokensPerMinute: 100 }, budgets: [budget()] })
    const account = subject({ uid: 'account-1', whose: 'account', limits: { requestsPerMinute: 1 } })
    world.memory.seed('key-1', 's1')
    held(await ledger.reserve([key, account], need({ tokens: 10, holdByUnit: { Currency: 10, Tokens: 0 } })))
    for (let i = 0; i < 5; i += 1) {
      const verdict = refused(await ledger.reserve([key, account], need({ tokens: 10, holdByUnit: { Currency: 10, Tokens: 0 } })))
      expect([verdict.limit, verdict.whose]).toEqual(['requests', 'account'])
      await world.advance(1_000)
    }
    const { rates } = world.memory.booked('key-1')
    expect([rates.r.total, rates.t.total]).toEqual([1, 10])
  })

  test('headers show the limit of key and account that is nearest to exhaustion', async () => {
    const { ledger } = oneProcess()
    const key = subject({ limits: { requestsPerMinute: 5, tokensPerMinute: 100 } })
    const account = subject({ uid: 'account-1', whose: 'account', limits: { requestsPerMinute: 3 } })
    const { rates } = held(await ledger.reserve([key, account], need({ tokens: 10 })))
    expect(rates.requests).toMatchObject({ limit: 3, remaining: 2 })
    expect(rates.tokens).toMatchObject({ limit: 100, remaining: 90 })
    expect(rates.requests?.resetMs).toBeGreaterThan(59_000)
  })

  test('a lowered limit binds the next request, and a raised one forgets refusals', async () => {
    const { ledger } = oneProcess()
    const at = (requestsPerMinute: number) => subject({ limits: { requestsPerMinute } })
    for (let i = 0; i < 3; i += 1) held(await ledger.reserve([at(10)], need()))
    expect(refused(await ledger.reserve([at(3)], need())).limit).toBe('requests')
    held(await ledger.reserve([at(4)], need()))
    expect(refused(await ledger.reserve([at(4)], need())).limit).toBe('requests')
  })
})

describe('leases without demand', () => {
  const steady = subject({ limits: { requestsPerMinute: 6_000, tokensPerMinute: 600_000 } })

  /** Twenty requests a second, so that leases live for 10 s. */
  async function warm(world: LedgerWorld, ledger: LeaseLedger): Promise<void> {
    for (let i = 0; i < 60; i += 1) {
      ledger.settle(held(await ledger.reserve([steady], need({ tokens: 10 }))), usage({ inputTokens: 10 }))
      await world.advance(50)
    }
  }
  const booked = (world: LedgerWorld): readonly number[] => {
    const { rates } = world.memory.booked('key-1')
    return [rates.r.total, rates.t.total]
  }

  test('are returned at once when the record of the subject is removed', async () => {
    const { world, ledger } = oneProcess()
    await warm(world, ledger)
    expect(booked(world)[0]).toBeGreaterThan(60)
    ledger.changed('key-1')
    await world.advance(1)
    expect(booked(world)).toEqual([60, 600])
  })

  test('#39309: leases granted for a request that another subject refuses are returned within 250 ms', async () => {
    const { world, ledger } = oneProcess()
    const account = subject({ uid: 'account-1', whose: 'account', limits: { tokensPerMinute: 10 } })
    held(await ledger.reserve([account], need({ tokens: 10 })))
    await warm(world, ledger)
    const before = booked(world)[1] ?? 0
    expect(refused(await ledger.reserve([steady, account], need({ tokens: 50_000 }))).whose).toBe('account')
    expect(booked(world)[1]).toBeGreaterThanOrEqual(before + 40_000)
    await world.advance(250)
    expect(booked(world)[1]).toBe(600)
  })
})

test('a lowered limit ends the leases of the old one, and the store gets them back', async () => {
  const { world, ledger } = oneProcess()
  const at = (requestsPerMinute: number) => subject({ limits: { requestsPerMinute } })
  for (let i = 0; i < 200; i += 1) {
    held(await ledger.reserve([at(6_000)], need()))
    await world.advance(10)
  }
  expect(world.memory.booked('key-1').rates.r.total).toBeGreaterThan(200)
  expect(refused(await ledger.reserve([at(100)], need())).limit).toBe('requests')
  await world.advance(300)
  expect(world.memory.booked('key-1').rates.r.total).toBe(200)
})

describe('concurrent requests', () => {
  const key = subject({ limits: { maxConcurrentRequests: 2 } })

  test('#16011: two processes together run no more than the limit, and a freed permit serves the other at once', async () => {
    const world = new LedgerWorld()
    world.live = 2
    const [a, b] = [world.process(), world.process()]
    const hold = held(await a.reserve([key], need()))
    held(await b.reserve([key], need()))
    expect(refused(await a.reserve([key], need()))).toMatchObject({ limit: 'concurrency', waitMs: 5_000 })
    a.settle(hold, usage())
    await world.advance(1)
    held(await b.reserve([key], need()))
  })

  test('#20256, #27955, #28160: permits of a killed process are free after 15 s, those of a running one never', async () => {
    const world = new LedgerWorld()
    const [dead, living] = [world.process(), world.process()]
    held(await dead.reserve([key], need()))
    world.store.fate = ({ process }) => (process === 'p1' ? 'never arrives' : 'works')
    held(await living.reserve([key], need()))
    await world.advance(14_000)
    expect(world.memory.booked('key-1').permits.free(2)).toBe(0)
    await world.advance(6_000)
    expect(world.memory.booked('key-1').permits.free(2)).toBe(1)
    await world.advance(60_000)
    expect(world.memory.booked('key-1').permits.free(2)).toBe(1)
  })

  test('L6 a process that was away for so long that others have its permits finishes its calls, and starts none without asking', async () => {
    const world = new LedgerWorld()
    const [away, other] = [world.process(), world.process()]
    const running = [held(await away.reserve([key], need())), held(await away.reserve([key], need()))]
    world.store.fate = ({ process }) => (process === 'p1' ? 'never arrives' : 'works')
    await world.advance(16_000)
    for (let call = 0; call < 2; call += 1) held(await other.reserve([key], need()))
    expect((await away.reserve([key], need())).outcome, 'cut off').toBe('unavailable')
    world.store.recover()
    for (const hold of running) away.settle(hold, usage())
    await world.advance(3_000)
    expect(refused(await away.reserve([key], need())).limit, 'back').toBe('concurrency')
  })

  test('nothing is left after every request has ended', async () => {
    const { world, ledger } = oneProcess()
    const roomy = subject({ limits: { maxConcurrentRequests: 50 } })
    const holds = await Promise.all(Array.from({ length: 60 }, async () => ledger.reserve([roomy], need())))
    const running = holds.filter((verdict): verdict is Hold => verdict.outcome === 'held')
    expect(running).toHaveLength(50)
    running.forEach((hold, at) => (at % 2 ? ledger.settle(hold, usage()) : ledger.release(hold)))
    await world.advance(2_000)
    expect(world.memory.booked('key-1').permits.free(50)).toBe(50)
  })
})

test('W5 a process that has not reached the store for hours says so in its first call, because the operator may have forgotten it', async () => {
  const { world, ledger } = oneProcess()
  const key = subject({ limits: { requestsPerMinute: 10 } })
  const asked = async (): Promise<boolean | undefined> => {
    await ledger.reserve([key], need())
    await world.advance(3_000)
    return world.store.calls.at(-1)?.wasAway
  }
  expect(await asked()).toBe(false)
  await world.advance(2 * 3_600_000)
  const before = world.store.calls.length
  await asked()
  expect(world.store.calls[before]?.wasAway).toBe(true)
  expect(await asked(), 'a later call').toBe(false)
  for (let hour = 0; hour < 3; hour += 1) {
    await world.advance(3_000_000)
    ledger.heard()
  }
  expect(await asked(), 'although this subject has rested, the process was there').toBe(false)
})

test('W5 the first call after such a time reports every budget, also one that refuses nothing', async () => {
  const { world, ledger } = oneProcess()
  const key = subject({ budgets: [budget({ name: 'audit', onExceeded: 'Audit' }), budget()] })
  const costing = need({ holdByUnit: { Currency: 10, Tokens: 0 } })
  ledger.settle(held(await ledger.reserve([key], costing)), usage({ costMicros: 10 }))
  await world.advance(3 * 3_600_000)
  const before = world.store.calls.length
  held(await ledger.reserve([key], costing))
  expect(world.store.calls[before]).toMatchObject({ wasAway: true })
  const spent = world.store.calls[before]?.reports.filter((report) => report.spent > 0)
  expect(spent?.map((report) => [report.field.split(':')[0], report.spent])).toEqual([
    ['audit', 10],
    ['month', 10],
  ])
})
