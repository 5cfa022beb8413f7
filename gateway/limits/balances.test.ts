import { describe, expect, test } from 'vitest'
import { held, LedgerWorld, need, refused, subject, usage } from '../../test/support/ledger-world.ts'
import { settle } from '../../test/support/manual-clock.ts'
import { halvesOf } from '#contract/values/signed-micros.ts'
import type { LeaseLedger } from './lease-ledger.ts'
import type { LimitSubject, Need, Verdict } from './ledger.ts'
import type { AccountSpend, LedgerBalance } from '#contract/ledger/account-spend.ts'

const ACCOUNT = 'account-1'
const HOUR_MS = 3_600_000

const prepaid = (credits: bigint): LimitSubject => subject({ uid: ACCOUNT, whose: 'account', balance: { credits: halvesOf(credits) } })
const unmetered = subject({ uid: ACCOUNT, whose: 'account', balance: { credits: undefined } })
const costing = (micros: number): Need => need({ holdByUnit: { Currency: micros, Tokens: 0 } })

function merge(world: LedgerWorld, books: Partial<AccountSpend> = {}): void {
  world.memory.mergeBalances([{ name: ACCOUNT, books: { openFrom: 0, closedSpend: 0n, spent: new Map(), ...books }, isReady: true }])
}

/** A world with one process and a balance that is ready. */
function oneProcess(): { readonly world: LedgerWorld; readonly ledger: LeaseLedger } {
  const world = new LedgerWorld()
  merge(world)
  return { world, ledger: world.process() }
}

function balanceIn(world: LedgerWorld): LedgerBalance {
  const [state] = world.memory.readBalances([ACCOUNT])
  if (state === undefined || state === 'absent') throw new Error('the balance is absent')
  return state
}

const holdersIn = (world: LedgerWorld): Record<string, number> => Object.fromEntries(balanceIn(world).holders)
const spentIn = (world: LedgerWorld): Record<string, number> => Object.fromEntries(balanceIn(world).spent)

async function spend(ledger: LeaseLedger, account: LimitSubject, costMicros: number, hold = costMicros): Promise<void> {
  ledger.settle(held(await ledger.reserve([account], costing(hold))), usage({ costMicros }))
}

describe('a prepaid balance', () => {
  test('of 200 parallel requests exactly those that fit pass, and no more than the credits is spent', async () => {
    const world = new LedgerWorld()
    merge(world)
    world.live = 2
    const ledgers = [world.process(), world.process()]
    const verdicts = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => ledgers[at % 2]!.reserve([prepaid(1_000n)], costing(30))),
    )
    expect(verdicts.filter(({ outcome }) => outcome === 'held')).toHaveLength(33)
    verdicts.forEach((verdict, at) => verdict.outcome === 'held' && ledgers[at % 2]!.settle(verdict, usage({ costMicros: 30 })))
    await world.advance(5_000)
    expect([Object.values(spentIn(world)), holdersIn(world)]).toEqual([[990], {}])
  })

  test('that is used up refuses every request at once, also one that costs nothing, and asks the store once in 10 s', async () => {
    const { world, ledger } = oneProcess()
    const account = prepaid(100n)
    await spend(ledger, account, 100)
    await world.advance(300)
    const refusal = refused(await ledger.reserve([account], costing(1)))
    expect(refusal).toMatchObject({ limit: 'balanceExhausted', whose: 'account', waitMs: 'never' })
    expect([refusal.needed, refusal.left, refusal.resetMs, refusal.budget]).toEqual([undefined, undefined, undefined, undefined])
    const before = world.store.calls.length
    for (let i = 0; i < 50; i += 1) {
      expect(refused(await ledger.reserve([account], costing(i % 2))).limit).toBe('balanceExhausted')
      await world.advance(1_000)
    }
    expect(world.store.calls.length - before).toBeLessThan(8)
  })

  test('of −1 micro-unit is used up', async () => {
    const { world, ledger } = oneProcess()
    const account = prepaid(100n)
    await spend(ledger, account, 101, 100)
    await world.advance(300)
    expect(refused(await ledger.reserve([account], costing(1))).limit).toBe('balanceExhausted')
    expect(refused(await world.process().reserve([prepaid(-1n)], costing(1))).limit).toBe('balanceExhausted')
  })

  test('of nine digits and beyond 2^53 admits to the last micro-unit', async () => {
    const { world, ledger } = oneProcess()
    merge(world, { openFrom: 1, closedSpend: 2n ** 70n })
    const account = prepaid(2n ** 70n + 10n ** 15n - 1n)
    const all = held(await ledger.reserve([account], costing(10 ** 15 - 1)))
    expect(refused(await world.process().reserve([account], costing(1))).limit).toBe('balanceHeld')
    ledger.settle(all, usage({ costMicros: 10 ** 15 - 2 }))
    await world.advance(300)
    await spend(ledger, account, 1)
    await world.advance(300)
    expect(refused(await ledger.reserve([account], costing(1))).limit).toBe('balanceExhausted')
  })

  test('that is held by running requests differs from one that is smaller than the request', async () => {
    const { world, ledger } = oneProcess()
    const account = prepaid(100n)
    const hold = held(await ledger.reserve([account], costing(60)))
    expect(refused(await ledger.reserve([account], costing(60)))).toMatchObject({ limit: 'balanceHeld', waitMs: 5_000, left: undefined })
    ledger.settle(hold, usage({ costMicros: 60 }))
    await world.advance(600)
    expect(refused(await ledger.reserve([account], costing(60)))).toMatchObject({ limit: 'balanceTooSmall', waitMs: 'never' })
    held(await ledger.reserve([account], costing(40)))
  })

  test('that is not ready is unavailable, and grants within seconds when it is', async () => {
    const world = new LedgerWorld()
    const ledger = world.process()
    expect(await ledger.reserve([prepaid(100n)], costing(1))).toMatchObject({ outcome: 'unavailable', reason: 'unseeded' })
    merge(world)
    await world.advance(4_000)
    held(await ledger.reserve([prepaid(100n)], costing(1)))
  })

  test('refuses a model without a price for good', async () => {
    const { ledger } = oneProcess()
    const unpriced = need({ holdByUnit: { Currency: undefined, Tokens: 10 } })
    const refusal = refused(await ledger.reserve([prepaid(100n)], unpriced))
    expect(refusal).toMatchObject({ limit: 'unpriced', whose: 'account', waitMs: 'never' })
    expect(refusal.budget).toBeUndefined()
    held(await ledger.reserve([unmetered], unpriced))
  })

  test('is never shared out without the store', async () => {
    const { world, ledger } = oneProcess()
    const account = { ...prepaid(1_000n), onStoreUnavailable: 'LocalShare' } as const
    await spend(ledger, account, 10)
    await world.advance(10_000)
    world.store.fail('never arrives')
    expect(await ledger.reserve([account], costing(10))).toMatchObject({ outcome: 'unavailable', reason: 'store' })
  })

  test('counts a hold once, however often it is settled or released, and gives a released one back', async () => {
    const { world, ledger } = oneProcess()
    const hold = held(await ledger.reserve([prepaid(100n)], costing(100)))
    ledger.settle(hold, usage({ costMicros: 70 }))
    ledger.settle(hold, usage({ costMicros: 70 }))
    ledger.release(hold)
    ledger.release(held(await ledger.reserve([prepaid(200n)], costing(100))))
    await world.advance(4_000)
    expect([spentIn(world), holdersIn(world)]).toEqual([{ '1:p1': 70 }, {}])
  })

  test('charges the whole hold where the cost is unknown', async () => {
    const { world, ledger } = oneProcess()
    ledger.settle(held(await ledger.reserve([prepaid(100n)], costing(40))), undefined)
    await world.advance(4_000)
    expect(spentIn(world)).toEqual({ '1:p1': 40 })
  })

  test('of an account that refuses a request leaves the limits of the key whole', async () => {
    const { world, ledger } = oneProcess()
    const key = subject({ limits: { requestsPerMinute: 10 } })
    expect(refused(await ledger.reserve([key, prepaid(0n)], costing(1))).limit).toBe('balanceExhausted')
    await world.advance(1_000)
    expect(world.memory.booked('key-1').rates.r.total).toBe(0)
  })
})

describe('floats', () => {
  test('steady small requests are held in memory, and the float comes back when they end', async () => {
    const { world, ledger } = oneProcess()
    const account = prepaid(100_000_000n)
    let most = 0
    for (let i = 0; i < 500; i += 1) {
      await spend(ledger, account, 7, 10)
      await world.advance(10)
      most = Math.max(most, ...balanceIn(world).holders.values())
    }
    expect(ledger.stats.waited).toBeLessThan(150)
    expect(most).toBeLessThanOrEqual(50_010)
    await world.advance(5_000)
    expect([spentIn(world), holdersIn(world)]).toEqual([{ '1:p1': 3_500 }, {}])
  })

  test('a small balance is held request by request, to its last micro-unit', async () => {
    const { world, ledger } = oneProcess()
    const account = prepaid(100n)
    for (let i = 0; i < 10; i += 1) {
      await spend(ledger, account, 10)
      await world.advance(100)
    }
    await world.advance(300)
    expect(refused(await ledger.reserve([account], costing(1))).limit).toBe('balanceExhausted')
  })

  test('a record with fewer credits ends the float at once', async () => {
    const { world, ledger } = oneProcess()
    for (let i = 0; i < 100; i += 1) {
      await spend(ledger, prepaid(100_000_000n), 10)
      await world.advance(20)
    }
    expect(Object.values(holdersIn(world))[0]).toBeGreaterThan(0)
    ledger.changed(ACCOUNT)
    await world.advance(0)
    expect(holdersIn(world)).toEqual({})
    expect(refused(await ledger.reserve([prepaid(500n)], costing(1))).limit).toBe('balanceExhausted')
  })

  test('a request under fewer credits takes no float that was granted under more', async () => {
    const { world, ledger } = oneProcess()
    for (let i = 0; i < 100; i += 1) {
      await spend(ledger, prepaid(100_000_000n), 10)
      await world.advance(20)
    }
    expect(refused(await ledger.reserve([prepaid(500n)], costing(1))).limit).toBe('balanceExhausted')
  })
})

describe('a credit', () => {
  test('ends the refusals of a used-up balance at once', async () => {
    const { ledger } = oneProcess()
    expect(refused(await ledger.reserve([prepaid(0n)], costing(5))).limit).toBe('balanceExhausted')
    held(await ledger.reserve([prepaid(5n)], costing(5)))
  })

  test('counts for a request that waits behind a call under the former credits', async () => {
    const { world, ledger } = oneProcess()
    world.store.fate = () => 'hangs'
    const first = ledger.reserve([prepaid(0n)], costing(5))
    await settle()
    world.store.recover()
    const second = ledger.reserve([prepaid(10n)], costing(5))
    for (const release of world.store.hanging.splice(0)) release()
    await world.advance(1)
    expect([(await first).outcome, (await second).outcome]).toEqual(['held', 'held'])
  })
})

test('spend whose period is not known yet is lent to no other process', async () => {
  const world = new LedgerWorld()
  merge(world)
  const [first, second] = [world.process(), world.process()]
  const verdict = held(await first.reserve([prepaid(100n)], costing(100)))
  world.clock.skip(HOUR_MS) // too long ago for the period that the store named then
  first.settle(verdict, usage({ costMicros: 100 }))
  let reports = 0
  world.store.fate = ({ process }) => {
    if (process === 'p1') reports += 1
    return 'works'
  }
  while (reports === 0) await world.advance(1)
  refused(await second.reserve([prepaid(100n)], costing(1)))
  await world.advance(5_000)
  expect([Object.values(spentIn(world)), holdersIn(world)]).toEqual([[100], {}])
})

describe('an account that is not prepaid', () => {
  test('is admitted at once without a call, and everything it spends counts', async () => {
    const world = new LedgerWorld()
    const ledger = world.process()
    for (let i = 0; i < 5; i += 1) {
      const verdict: Verdict | Promise<Verdict> = ledger.reserve([unmetered], costing(100))
      expect(verdict).not.toBeInstanceOf(Promise)
      ledger.settle(held(await verdict), usage({ costMicros: 7 }))
    }
    await world.advance(4_000)
    expect(world.memory.readBalances([ACCOUNT])).toEqual(['absent'])
    merge(world, { openFrom: 3 })
    await world.advance(10_000)
    expect([spentIn(world), holdersIn(world)]).toEqual([{ '4:p1': 35 }, {}])
  })

  test('asks only now and then while its spend has no period yet', async () => {
    const world = new LedgerWorld()
    const ledger = world.process()
    ledger.settle(held(await ledger.reserve([unmetered], costing(1))), usage({ costMicros: 1 }))
    await world.advance(60_000)
    expect(world.store.calls.length).toBeLessThan(20)
  })

  test('has spent before it becomes prepaid, and is held to its balance from then on', async () => {
    const { world, ledger } = oneProcess()
    await spend(ledger, unmetered, 30)
    await world.advance(5_000)
    expect(refused(await ledger.reserve([prepaid(30n)], costing(1))).limit).toBe('balanceExhausted')
    held(await ledger.reserve([prepaid(31n)], costing(1)))
  })
})

describe('reports', () => {
  /** Largest time between two calls about the account, ms. */
  function gapsOf(world: LedgerWorld, from: number): number {
    const times = world.store.journal.flatMap((event) => (event.do === 'call' ? [event.atMs] : [])).slice(from)
    return Math.max(...times.map((time, at) => time - (times[at - 1] ?? time)))
  }

  test('a process that holds anything reports at least every 4 s', async () => {
    const { world, ledger } = oneProcess()
    held(await ledger.reserve([prepaid(100n)], costing(40)))
    const from = world.store.journal.length
    await world.advance(60_000)
    expect(gapsOf(world, from - 1)).toBeLessThanOrEqual(4_000)
  })

  test('so a balance that was lost knows every hold before it may grant again, also while requests are refused', async () => {
    const { world, ledger } = oneProcess()
    const other = world.process()
    held(await ledger.reserve([prepaid(100n)], costing(60)))
    await spend(ledger, prepaid(100n), 10)
    await world.advance(5_000)
    world.memory.dropBalances([ACCOUNT])
    for (let ms = 0; ms < 6_000; ms += 50) {
      expect((await ledger.reserve([prepaid(100n)], costing(20))).outcome).toBe('unavailable')
      await world.advance(50)
    }
    expect(balanceIn(world)).toMatchObject({ openFrom: undefined, holders: new Map([['p1', 60]]), spent: new Map([['1:p1', 10]]) })
    merge(world)
    expect(refused(await other.reserve([prepaid(100n)], costing(31))).limit).toBe('balanceHeld')
    held(await other.reserve([prepaid(100n)], costing(30)))
  })

  test('B9 spend that was counted by a call without an answer counts once, also after the store has lost its data', async () => {
    const { world, ledger } = oneProcess()
    const hold = held(await ledger.reserve([prepaid(100n)], costing(20)))
    world.store.fate = () => 'reply lost'
    ledger.settle(hold, usage({ costMicros: 20 }))
    await world.advance(3_500)
    const { spent } = balanceIn(world)
    expect(spent).toEqual(new Map([['1:p1', 20]]))
    world.store.recover()
    world.memory.drop(ACCOUNT)
    await world.advance(6_000)
    merge(world, { spent })
    await world.advance(6_000)
    expect([spentIn(world), holdersIn(world)]).toEqual([{ '1:p1': 20 }, {}])
  })

  test('a hold that was granted by a lost reply does not stay held', async () => {
    const { world, ledger } = oneProcess()
    world.store.fate = () => 'reply lost'
    expect((await ledger.reserve([prepaid(100n)], costing(70))).outcome).toBe('unavailable')
    world.store.recover()
    await world.advance(2_000)
    expect(holdersIn(world)).toEqual({})
  })

  test('a process that ends reports everything it has spent', async () => {
    const { world, ledger } = oneProcess()
    await spend(ledger, prepaid(1_000n), 30)
    await spend(ledger, unmetered, 5)
    const closing = ledger.close(1_000)
    await world.advance(50)
    await closing
    expect([spentIn(world), holdersIn(world)]).toEqual([{ '1:p1': 35 }, {}])
  })
})

describe('periods', () => {
  test('a request belongs to the period that the last reply before its end has named', async () => {
    const { world, ledger } = oneProcess()
    const hold = held(await ledger.reserve([prepaid(100n)], costing(40)))
    world.memory.raisePeriods([{ name: ACCOUNT, period: 2 }])
    ledger.settle(hold, usage({ costMicros: 40 }))
    await world.advance(4_000)
    await spend(ledger, prepaid(100n), 10)
    await world.advance(4_000)
    expect(spentIn(world)).toEqual({ '1:p1': 40, '2:p1': 10 })
  })

  test('a process that has not asked for hours does not settle into a period that is closed', async () => {
    const { world, ledger } = oneProcess()
    await spend(ledger, unmetered, 5)
    await world.advance(10_000)
    for (const period of [2, 3, 4]) {
      world.memory.raisePeriods([{ name: ACCOUNT, period }])
      merge(world, { openFrom: period - 1, closedSpend: period > 2 ? 5n : 0n, spent: balanceIn(world).spent })
      world.clock.skip(2 * HOUR_MS)
    }
    await spend(ledger, unmetered, 7)
    await world.advance(10_000)
    expect(balanceIn(world)).toMatchObject({ openFrom: 3, period: 4, closedSpend: 5n, spent: new Map([['4:p1', 7]]) })
  })

  describe('a store that has lost its data names no period to a process that knows an old one', () => {
    /** The period has changed twice since the process has asked, then the store has lost its data. */
    async function emptiedAfterHours(account: LimitSubject): Promise<{ readonly world: LedgerWorld; readonly ledger: LeaseLedger }> {
      const { world, ledger } = oneProcess()
      await spend(ledger, account, 5)
      await world.advance(5_000)
      world.clock.skip(4 * HOUR_MS)
      world.memory.dropBalances([ACCOUNT])
      return { world, ledger }
    }

    /** The operator merges its books, in which the old period is closed. */
    async function merged(world: LedgerWorld): Promise<void> {
      merge(world, { openFrom: 3, closedSpend: 5n })
      await world.advance(10_000)
    }

    test('so what ends before it answers counts', async () => {
      const { world, ledger } = await emptiedAfterHours(unmetered)
      await spend(ledger, unmetered, 7)
      await world.advance(10_000)
      await merged(world)
      expect([balanceIn(world).closedSpend, spentIn(world), holdersIn(world)]).toEqual([5n, { '4:p1': 7 }, {}])
    })

    test('and what ends after it has answered, too', async () => {
      const { world, ledger } = await emptiedAfterHours(unmetered)
      ledger.reportAgain()
      await world.advance(1_000)
      await spend(ledger, unmetered, 7)
      await world.advance(10_000)
      await merged(world)
      expect([balanceIn(world).closedSpend, spentIn(world), holdersIn(world)]).toEqual([5n, { '4:p1': 7 }, {}])
    })

    test('but a process that ends reports all it knows: the old period may still be open', async () => {
      const { world, ledger } = await emptiedAfterHours(unmetered)
      await spend(ledger, unmetered, 7)
      const closing = ledger.close(1_000)
      await world.advance(50)
      await closing
      expect([spentIn(world), holdersIn(world)]).toEqual([{ '1:p1': 12 }, {}])
    })

    test('also of a request that was held before, and its cost stays held until then', async () => {
      const { world, ledger } = oneProcess()
      const hold = held(await ledger.reserve([prepaid(100n)], costing(40)))
      await world.advance(1_000)
      world.clock.skip(4 * HOUR_MS)
      world.memory.dropBalances([ACCOUNT])
      ledger.settle(hold, usage({ costMicros: 40 }))
      await world.advance(10_000)
      expect([spentIn(world), holdersIn(world)]).toEqual([{}, { p1: 40 }])
      await merged(world)
      expect([balanceIn(world).closedSpend, spentIn(world), holdersIn(world)]).toEqual([5n, { '4:p1': 40 }, {}])
    })
  })

  test('an account with spend in an open period is never forgotten, and one whose periods are closed is', async () => {
    const { world, ledger } = oneProcess()
    await spend(ledger, prepaid(100n), 60)
    await world.advance(200_000)
    expect(ledger.stats.subjects).toBe(1)
    ledger.deleted(ACCOUNT)
    await world.advance(200_000)
    expect(ledger.stats.subjects).toBe(1)
    world.memory.raisePeriods([{ name: ACCOUNT, period: 3 }])
    merge(world, { openFrom: 2, closedSpend: 60n })
    world.clock.skip(3 * HOUR_MS)
    await world.advance(130_000)
    expect(ledger.stats.subjects).toBe(0)
    await spend(ledger, prepaid(100n), 40)
    await world.advance(4_000)
    expect(balanceIn(world)).toMatchObject({ closedSpend: 60n, spent: new Map([['3:p1', 40]]) })
    expect(refused(await ledger.reserve([prepaid(100n)], costing(1))).limit).toBe('balanceExhausted')
  })
})
