import { describe, expect, test } from 'vitest'
import { budget, held, LedgerWorld, need, oneProcess, refused, subject, usage } from '../../test/support/ledger-world.ts'
import type { Hold, LimitSubject, Verdict } from './ledger.ts'
import { LeaseLedger } from './lease-ledger.ts'
import { LedgerCallRefused } from './ledger.ts'

/** Sends a request while time advances. @returns the verdict and the time that it took */
async function timed(world: LedgerWorld, verdict: Verdict | Promise<Verdict>): Promise<readonly [Verdict, number]> {
  const start = world.clock.monotonic()
  let result: Verdict | undefined
  let tookMs = 0
  void Promise.resolve(verdict).then((settled) => {
    result = settled
    tookMs = world.clock.monotonic() - start
  })
  for (let i = 0; i < 200 && !result; i += 1) await world.advance(1)
  if (!result) throw new Error('no verdict')
  return [result, tookMs]
}

const closed = subject({ limits: { requestsPerMinute: 10 } })
const shared = subject({ limits: { requestsPerMinute: 10 }, onStoreUnavailable: 'LocalShare' })

describe('a store that does not answer', () => {
  test('#33923, #35273: FailClosed waits 50 ms once, then answers at once, and never says 429', async () => {
    const { world, ledger } = oneProcess()
    world.store.fail('hangs')
    const [first, tookMs] = await timed(world, ledger.reserve([closed], need()))
    expect(first).toMatchObject({ outcome: 'unavailable', reason: 'store', waitMs: 5_000 })
    expect(tookMs).toBeLessThanOrEqual(50)
    for (let i = 0; i < 20; i += 1) {
      const verdict = ledger.reserve([closed], need())
      expect(verdict).toMatchObject({ outcome: 'unavailable' })
      await world.advance(500)
    }
    expect(world.store.calls).toHaveLength(1)
  })

  test('its late grants are used or given back, and it serves again within 2 s of its recovery', async () => {
    const { world, ledger } = oneProcess()
    world.store.fail('hangs')
    await timed(world, ledger.reserve([closed], need()))
    await world.advance(30_000)
    world.store.recover()
    for (const release of world.store.hanging.splice(0)) release()
    await world.advance(2_100)
    expect(world.memory.booked('key-1').rates.r.total).toBe(0)
    held(await ledger.reserve([closed], need()))
  })

  test('leased units are used while it is away', async () => {
    const { world, ledger } = oneProcess()
    const busy = subject({ limits: { requestsPerMinute: 6_000 } })
    for (let i = 0; i < 100; i += 1) {
      held(await ledger.reserve([busy], need()))
      await world.advance(10)
    }
    world.store.fail('never arrives')
    let leased = 0
    while ((await ledger.reserve([busy], need())).outcome === 'held') leased += 1
    expect(leased).toBeGreaterThan(10)
  })

  test('#29986, commitpulse#6138: LocalShare admits limit / live, including earlier admissions of this process', async () => {
    const world = new LedgerWorld()
    world.live = 2
    const ledger = world.process()
    for (let i = 0; i < 3; i += 1) held(await ledger.reserve([shared], need()))
    world.store.fail('never arrives')
    const verdicts: Verdict[] = []
    for (let i = 0; i < 10; i += 1) verdicts.push(await ledger.reserve([shared], need()))
    expect(verdicts.filter(({ outcome }) => outcome === 'held')).toHaveLength(2)
    const refusal = refused(verdicts[9]!)
    expect(refusal.limit).toBe('requests')
    await world.advance(Number(refusal.waitMs))
    held(await ledger.reserve([shared], need()))
  })

  test('LocalShare below one request admits one per 60 s · live / limit', async () => {
    const world = new LedgerWorld()
    world.live = 4
    const ledger = world.process()
    world.store.fail('never arrives')
    const rare = subject({ limits: { requestsPerMinute: 2 }, onStoreUnavailable: 'LocalShare' })
    let admitted = 0
    for (let i = 0; i < 240; i += 1) {
      if ((await ledger.reserve([rare], need())).outcome === 'held') admitted += 1
      await world.advance(1_000)
    }
    expect(admitted).toBe(2)
  })

  test('LocalShare admissions are booked when the store is back', async () => {
    const { world, ledger } = oneProcess()
    world.store.fail('never arrives')
    for (let i = 0; i < 4; i += 1) held(await ledger.reserve([shared], need()))
    world.store.recover()
    await world.advance(3_000)
    expect(world.memory.booked('key-1').rates.r.total).toBe(4)
  })

  test('LocalShare of a budget is a part of the last known rest, and an unknown rest admits nothing', async () => {
    const world = new LedgerWorld()
    world.live = 2
    world.memory.seed('key-1', 'seed-1')
    const key = subject({ budgets: [budget({ amount: 1_000 })], onStoreUnavailable: 'LocalShare' })
    const costing = need({ holdByUnit: { Currency: 100, Tokens: 0 } })
    const [knows, isNew] = [world.process(), world.process()]
    knows.settle(held(await knows.reserve([key], costing)), usage({ costMicros: 100 }))
    await world.advance(300)
    world.store.fail('never arrives')
    expect(await isNew.reserve([key], costing)).toMatchObject({ outcome: 'unavailable', reason: 'store' })
    const verdicts: Verdict[] = []
    for (let i = 0; i < 10; i += 1) verdicts.push(await knows.reserve([key], costing))
    expect(verdicts.filter(({ outcome }) => outcome === 'held')).toHaveLength(4)
  })

  test('of a key with LocalShare and an account with FailClosed the stricter policy applies', async () => {
    const { world, ledger } = oneProcess()
    world.store.fail('never arrives')
    const account = subject({ uid: 'account-1', whose: 'account', limits: { requestsPerMinute: 10 } })
    expect(await ledger.reserve([shared, account], need())).toMatchObject({ outcome: 'unavailable' })
  })

  test('an error reply makes only its subject unavailable', async () => {
    const { world, ledger } = oneProcess()
    world.store.before = ({ subject: uid }) => {
      if (uid === 'key-1') throw new LedgerCallRefused('WRONGTYPE')
    }
    expect(await ledger.reserve([closed], need())).toMatchObject({ outcome: 'unavailable', reason: 'store' })
    held(await ledger.reserve([subject({ uid: 'key-2', limits: { requestsPerMinute: 5 } })], need()))
    world.store.before = undefined
    await world.advance(300)
    held(await ledger.reserve([closed], need()))
  })
})

test('a time zone that the calendar does not know makes its key unavailable, and ends nothing', async () => {
  const world = new LedgerWorld()
  world.memory.seed('key-1', 'seed-1')
  const seen: string[] = []
  const ledger = new LeaseLedger({
    store: world.store,
    clock: world.clock,
    process: 'p1',
    live: () => 1,
    calendar: () => {
      throw new RangeError('no such time zone')
    },
    onRefused: ({ message }) => seen.push(message),
  })
  for (const onExceeded of ['Block', 'Audit'] as const) {
    const key = subject({ budgets: [budget({ onExceeded })] })
    expect(await ledger.reserve([key], need())).toMatchObject({ outcome: 'unavailable' })
  }
  expect(seen).toContain('no such time zone')
})

test('#40050: a hold that was granted by a lost reply, the first of its budget, does not stay held', async () => {
  const { world, ledger } = oneProcess()
  const key = subject({ budgets: [budget({ amount: 1_000 })] })
  world.store.fate = () => 'reply lost'
  expect((await ledger.reserve([key], need({ holdByUnit: { Currency: 700, Tokens: 0 } }))).outcome).toBe('unavailable')
  world.store.fate = () => 'works'
  await world.advance(1_000)
  expect((await world.process().snapshot(key)).budgets).toMatchObject([{ held: 0, spent: 0 }])
})

describe('a store that lost its data', () => {
  const key = subject({ limits: { requestsPerMinute: 10, maxConcurrentRequests: 4 }, budgets: [budget({ amount: 1_000 })] })
  const costing = need({ holdByUnit: { Currency: 100, Tokens: 0 } })

  test('gets the admissions, running requests and spend of this process reported once', async () => {
    const { world, ledger } = oneProcess()
    for (let i = 0; i < 3; i += 1) ledger.settle(held(await ledger.reserve([key], costing)), usage({ costMicros: 100 }))
    held(await ledger.reserve([key], costing))
    await world.advance(300)
    world.memory.drop('key-1')
    world.memory.seed('key-1', 'seed-2', [[`month:Currency:Month:${Date.UTC(2026, 0, 1)}`, 200]])
    await world.advance(15_000)
    const { rates, permits } = world.memory.booked('key-1')
    expect(rates.r.total).toBe(4)
    expect(permits.free(4)).toBe(3)
    expect((await ledger.snapshot(key)).budgets).toMatchObject([{ spent: 300, held: 100 }])
  })

  test('L1 one lost call makes a process report all of its subjects, before others admit calls as if their minute were empty', async () => {
    const world = new LedgerWorld()
    const [first, second] = [world.process(), world.process()]
    const [busy, quiet] = ['busy', 'quiet'].map((uid) => subject({ uid, limits: { requestsPerMinute: 10 } })) as [
      LimitSubject,
      LimitSubject,
    ]
    for (let call = 0; call < 10; call += 1) first.settle(held(await first.reserve([quiet], need())), usage())
    first.settle(held(await first.reserve([busy], need())), usage())
    await world.advance(20_000)
    for (const uid of ['busy', 'quiet']) world.memory.drop(uid)
    held(await first.reserve([busy], need()))
    await world.advance(500)
    expect((await second.reserve([quiet], need())).outcome).toBe('refused')
  })

  test('L1 a process that is new to a key right after the loss admits at most one more limit, and none once the others have noticed', async () => {
    const world = new LedgerWorld()
    const [old, fresh] = [world.process(), world.process()]
    const limited = subject({ uid: 'limited', limits: { requestsPerMinute: 10 } })
    const admitted = async (ledger: LeaseLedger): Promise<number> => {
      const verdicts: Verdict[] = []
      for (let call = 0; call < 20; call += 1) verdicts.push(await ledger.reserve([limited], need()))
      return verdicts.filter(({ outcome }) => outcome === 'held').length
    }
    expect(await admitted(old)).toBe(10)
    await world.advance(20_000)
    world.memory.drop('limited')
    expect(await admitted(fresh)).toBe(10)
    old.reportAgain() // as when it has loaded the rebuilt data
    await world.advance(30_000)
    expect([await admitted(old), await admitted(fresh)]).toEqual([0, 0])
  })

  test('an empty budget admits no request before the seed', async () => {
    const { world, ledger } = oneProcess()
    ledger.settle(held(await ledger.reserve([key], costing)), usage({ costMicros: 900 }))
    await world.advance(300)
    world.memory.drop('key-1')
    expect(await ledger.reserve([key], costing)).toMatchObject({ outcome: 'unavailable', reason: 'unseeded' })
    world.memory.seed('key-1', 'seed-2')
    await world.advance(600)
    held(await ledger.reserve([key], costing))
    expect((await ledger.reserve([key], costing)).outcome).toBe('refused')
  })

  test('L7 a store that went back lends no spend of a frozen process again, and does not count it twice', async () => {
    const world = new LedgerWorld()
    world.memory.seed('key-1', 'seed-1')
    const spending = subject({ budgets: [budget({ amount: 1_000 })] })
    const [frozen, busy] = [world.process(), world.process()]
    for (let i = 0; i < 3; i += 1) frozen.settle(held(await frozen.reserve([spending], costing)), usage({ costMicros: 100 }))
    await world.advance(5_000)
    for (let i = 0; i < 5; i += 1) busy.settle(held(await busy.reserve([spending], costing)), usage({ costMicros: 100 }))
    await world.advance(300)
    world.memory.drop('key-1')
    world.memory.seed('key-1', 'seed-1') // the state before any spend
    world.store.fate = ({ process }) => (process === 'p1' ? 'never arrives' : 'works')
    let admitted = 0
    for (let i = 0; i < 10; i += 1) {
      const verdict = await busy.reserve([spending], costing)
      if (verdict.outcome !== 'held') continue
      busy.settle(verdict, usage({ costMicros: 100 }))
      admitted += 1
    }
    expect(admitted).toBe(2)
    await world.advance(300)
    world.store.fate = () => 'works'
    await frozen.reserve([spending], costing)
    await world.advance(3_000)
    expect((await world.process().snapshot(spending)).budgets).toMatchObject([{ spent: 1_000, held: 0 }])
  })

  test('L8 after an outage of more than ten seconds, calls of a pod that has not reported yet are above the limit, by at most the limit', async () => {
    const world = new LedgerWorld()
    const busy = subject({ limits: { maxConcurrentRequests: 9 } })
    const [late, early] = [world.process(), world.process()]
    const running: Hold[] = []
    for (const [ledger, count] of [
      [late, 5],
      [early, 4],
    ] as const)
      for (let i = 0; i < count; i += 1) running.push(held(await ledger.reserve([busy], need())))
    await world.advance(5_000)
    world.store.fail('never arrives')
    await world.advance(16_000)
    world.store.recover()
    world.store.fate = ({ process }) => (process === 'p1' ? 'never arrives' : 'works')
    await world.advance(3_000)
    const admits = async (ledger: LeaseLedger): Promise<boolean> => {
      const verdict = await ledger.reserve([busy], need())
      if (verdict.outcome === 'held') running.push(verdict)
      return verdict.outcome === 'held'
    }
    while (await admits(early));
    expect(running.length).toBeLessThanOrEqual(2 * 9)
    world.store.recover()
    await world.advance(5_000)
    expect([await admits(late), await admits(early)]).toEqual([false, false])
    for (const hold of running.splice(0, 5)) late.settle(hold, usage())
    await world.advance(1_000)
    expect([running.length, await admits(early)]).toEqual([9, false])
  })

  test('L7 a new seed while nothing was lost counts no spend of any budget twice', async () => {
    const { world, ledger } = oneProcess()
    const audit = budget({ name: 'audit', onExceeded: 'Audit' })
    const both = subject({ budgets: [budget({ amount: 10_000 }), audit] })
    for (let i = 0; i < 3; i += 1) ledger.settle(held(await ledger.reserve([both], costing)), usage({ costMicros: 100 }))
    await world.advance(5_000)
    const month = Date.UTC(2026, 0, 1)
    world.memory.seed('key-1', 'seed-2', [[`audit:Currency:Month:${month}`, 301]])
    for (let i = 0; i < 2; i += 1) {
      ledger.settle(held(await ledger.reserve([both], costing)), usage({ costMicros: 100 }))
      await world.advance(5_000)
    }
    expect(Object.fromEntries(world.memory.checkpoint('key-1'))).toMatchObject({
      [`month:Currency:Month:${month}`]: 500,
      [`audit:Currency:Month:${month}`]: 501,
    })
  })

  test('the holds of a dead process stay spent until it comes back', async () => {
    const world = new LedgerWorld()
    world.memory.seed('key-1', 'seed-1')
    const [lost, other] = [world.process(), world.process()]
    const hold = held(await lost.reserve([key], costing))
    world.memory.reap('key-1', 'p1')
    expect((await other.snapshot(key)).budgets).toMatchObject([{ spent: 0, held: 0, unsettled: 100 }])
    lost.settle(hold, usage({ costMicros: 40 }))
    await world.advance(1_000)
    expect((await other.snapshot(key)).budgets).toMatchObject([{ spent: 40, held: 0, unsettled: 0 }])
  })
})

describe('the end of a process', () => {
  test('returns leases and permits, reports spend, and refuses new requests', async () => {
    const world = new LedgerWorld()
    world.memory.seed('key-1', 'seed-1')
    const key = subject({ limits: { requestsPerMinute: 6_000, maxConcurrentRequests: 50 }, budgets: [budget()] })
    const ledger = world.process()
    let served = 0
    for (let i = 0; i < 200; i += 1) {
      ledger.settle(held(await ledger.reserve([key], need({ holdByUnit: { Currency: 10, Tokens: 0 } }))), usage({ costMicros: 3 }))
      served += 1
      await world.advance(10)
    }
    const closing = ledger.close(1_000)
    await world.advance(50)
    await closing
    const { rates, permits } = world.memory.booked('key-1')
    expect([rates.r.total, permits.free(50)]).toEqual([served, 50])
    expect(Object.fromEntries(world.memory.checkpoint('key-1'))).toEqual({ [`month:Currency:Month:${Date.UTC(2026, 0, 1)}`]: 3 * served })
    expect(ledger.reserve([key], need())).toMatchObject({ outcome: 'unavailable', reason: 'closed' })
  })

  test('an unused subject is dropped from memory, and its spend is not returned afterwards', async () => {
    const world = new LedgerWorld()
    world.memory.seed('key-1', 'seed-1')
    const key = subject({ limits: { requestsPerMinute: 10 } })
    const budgeted = subject({ uid: 'key-1', budgets: [budget({ amount: 100 })] })
    const ledger = world.process()
    ledger.settle(held(await ledger.reserve([subject({ ...key, uid: 'key-2' })], need())), usage())
    ledger.settle(held(await ledger.reserve([budgeted], need({ holdByUnit: { Currency: 60, Tokens: 0 } }))), usage({ costMicros: 60 }))
    await world.advance(200_000)
    expect(ledger.stats.subjects).toBeLessThan(2)
    expect((await ledger.snapshot(budgeted)).budgets).toMatchObject([{ spent: 60 }])
    const last = held(await ledger.reserve([budgeted], need({ holdByUnit: { Currency: 40, Tokens: 0 } })))
    ledger.settle(last, usage({ costMicros: 40 }))
    await world.advance(1_000)
    expect((await ledger.snapshot(budgeted)).budgets).toMatchObject([{ spent: 100, held: 0 }])
    expect((await ledger.reserve([budgeted], need({ holdByUnit: { Currency: 1, Tokens: 0 } }))).outcome).toBe('refused')
  })
})
