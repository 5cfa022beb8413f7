import { expect, test } from 'vitest'
import { budget, held, LedgerWorld, need, oneProcess, subject, usage } from '../../test/support/ledger-world.ts'

const SUBJECTS = 4_000

test('the reports of thousands of subjects leave in small parts, so that no request waits for all of them', async () => {
  const { world, ledger } = oneProcess()
  const subjects = Array.from({ length: SUBJECTS }, (_, at) => subject({ uid: `key-${at}`, limits: { tokensPerMinute: 1_000_000 } }))
  await Promise.all(
    subjects.map(async (one) => {
      const verdict = await ledger.reserve([one], need({ tokens: 100 }))
      if (verdict.outcome === 'held') ledger.settle(verdict, usage({ inputTokens: 10 }))
    }),
  )
  const reported = new Set<string>()
  const before = world.store.calls.length
  let most = 0
  for (let ms = 0; ms < 20_000; ms += 5) {
    const already = world.store.calls.length
    await world.advance(5)
    most = Math.max(most, world.store.calls.length - already)
  }
  for (const { subject: uid } of world.store.calls.slice(before)) reported.add(uid)
  expect(reported.size).toBe(SUBJECTS)
  expect(most).toBeLessThanOrEqual(20)
})

test('the leases of many subjects that are removed in one turn go back within 4 s, in small parts', async () => {
  const { world, ledger } = oneProcess()
  const [many, rounds] = [1_000, 12]
  const uids = Array.from({ length: many }, (_, at) => `key-${at}`)
  const subjects = uids.map((uid) => subject({ uid, limits: { requestsPerMinute: 6_000 } }))
  for (let round = 0; round < rounds; round += 1) {
    for (const one of subjects) {
      const verdict = await ledger.reserve([one], need())
      if (verdict.outcome === 'held') ledger.settle(verdict, usage())
    }
    await world.advance(50)
  }
  const booked = (): number => uids.reduce((sum, uid) => sum + world.memory.booked(uid).rates.r.total, 0)
  expect(booked()).toBeGreaterThan(rounds * many)
  const before = world.store.calls.length
  for (const uid of uids) ledger.changed(uid)
  await world.advance(0)
  expect(world.store.calls.length - before).toBeLessThanOrEqual(200)
  let most = 0
  for (let ms = 0; ms < 4_000; ms += 5) {
    const already = world.store.calls.length
    await world.advance(5)
    most = Math.max(most, world.store.calls.length - already)
  }
  expect(booked()).toBe(rounds * many)
  expect(most).toBeLessThanOrEqual(20)
})

test('W1 deleted subjects with spend cost no call and no memory, whatever happens to the store afterwards', async () => {
  const world = new LedgerWorld()
  const ledger = world.process()
  const uids = Array.from({ length: 200 }, (_, at) => `key-${at}`)
  for (const uid of uids) {
    world.store.seed(uid, 'seed-1')
    const one = subject({ uid, budgets: [budget({ window: 'Day' })] })
    ledger.settle(held(await ledger.reserve([one], need({ holdByUnit: { Currency: 10, Tokens: 0 } }))), usage({ costMicros: 10 }))
  }
  await world.advance(70_000)
  const [resting, used] = [uids.slice(0, 100), uids.slice(100)]
  const atRest = world.store.calls.length
  for (const uid of resting) ledger.deleted(uid)
  await world.advance(1_000)
  expect(world.store.calls.length).toBe(atRest)
  for (const uid of used)
    held(await ledger.reserve([subject({ uid, budgets: [budget({ window: 'Day' })] })], need({ holdByUnit: { Currency: 10, Tokens: 0 } })))
  for (const uid of used) ledger.deleted(uid)
  for (const uid of uids) world.store.wipe(uid) // the operator has deleted their budgets
  ledger.reportAgain()
  await world.advance(10_000)
  const before = world.store.calls.length
  ledger.reportAgain() // as after each new connection
  await world.advance(60_000)
  expect(world.store.calls.length - before).toBe(0)
  expect(ledger.stats.subjects).toBe(0)
})

test('W1 a subject without a seed is asked about ever less often', async () => {
  const world = new LedgerWorld()
  const ledger = world.process()
  const one = subject({ budgets: [budget()] })
  for (let ms = 0; ms < 60_000; ms += 50) {
    expect((await ledger.reserve([one], need({ holdByUnit: { Currency: 10, Tokens: 0 } }))).outcome).toBe('unavailable')
    await world.advance(50)
  }
  expect(world.store.calls.length).toBeLessThan(30)
})
