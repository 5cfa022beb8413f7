import { describe, expect, test } from 'vitest'
import { budget, LedgerWorld, need, oneProcess, refused, subject, usage } from '../../test/support/ledger-world.ts'
import type { LimitSubject } from './ledger.ts'

const limited = subject({ limits: { requestsPerMinute: 2 } })

async function usedUp(world: LedgerWorld, who: LimitSubject = limited) {
  const ledger = world.process()
  const holds = []
  for (let i = 0; i < 3; i += 1) holds.push(await ledger.reserve([who], need()))
  expect(holds.map(({ outcome }) => outcome)).toEqual(['held', 'held', 'refused'])
  return { ledger, holds }
}

describe('a refusal that is known before a request is read', () => {
  test('equals the answer that the request would get, and costs no call of the store', async () => {
    const world = new LedgerWorld()
    const { ledger } = await usedUp(world)
    const calls = world.store.calls.length
    expect(ledger.knownRefusal(limited)).toEqual(await ledger.reserve([limited], need()))
    expect(world.store.calls.length).toBe(calls)
  })

  test('does not exist for a subject without earlier requests, or with changed limits', async () => {
    const world = new LedgerWorld()
    const { ledger } = await usedUp(world)
    expect(ledger.knownRefusal(subject({ uid: 'key-2', limits: limited.limits }))).toBeUndefined()
    expect(ledger.knownRefusal(subject({ limits: { requestsPerMinute: 3 } }))).toBeUndefined()
  })

  test('ends when a request is released, and when its wait is over', async () => {
    const world = new LedgerWorld()
    const { ledger, holds } = await usedUp(world)
    ledger.release(holds[0] as never)
    expect(ledger.knownRefusal(limited)).toBeUndefined()
    const later = await usedUp(new LedgerWorld())
    expect(later.ledger.knownRefusal(limited)).toBeDefined()
    const again = new LedgerWorld()
    const { ledger: third } = await usedUp(again)
    await again.advance(62_000)
    expect(third.knownRefusal(limited)).toBeUndefined()
  })

  test('ends at the time that the first refusal announced, even if the store answered a later one slowly', async () => {
    const world = new LedgerWorld()
    const ledger = world.process()
    const single = subject({ limits: { requestsPerMinute: 1 } })
    await ledger.reserve([single], need())
    const { waitMs } = refused(await ledger.reserve([single], need()))
    await world.advance(Number(waitMs) - 1_500)
    world.store.fate = () => 'hangs'
    const early = ledger.reserve([single], need())
    await world.advance(40)
    world.store.hanging.forEach((letGo) => letGo())
    world.store.recover()
    expect((await early).outcome).toBe('refused')
    await world.advance(1_460)
    expect(ledger.knownRefusal(single)).toBeUndefined()
    expect((await ledger.reserve([single], need())).outcome).toBe('held')
  })

  test('does not exist while only tokens or permits are short: the body says how many a request needs', async () => {
    const { ledger } = oneProcess()
    const small = subject({ limits: { requestsPerMinute: 9, tokensPerMinute: 100, maxConcurrentRequests: 1 } })
    await ledger.reserve([small], need({ tokens: 100 }))
    expect((await ledger.reserve([small], need({ tokens: 100 }))).outcome).toBe('refused')
    expect(ledger.knownRefusal(small)).toBeUndefined()
  })

  test('does not exist if a budget is spent too: that refusal comes first, and a free model would not get it', async () => {
    const world = new LedgerWorld()
    const who = subject({ limits: { requestsPerMinute: 1 }, budgets: [budget({ amount: 10 })] })
    world.memory.seed(who.uid, 'seed')
    const ledger = world.process()
    const hold = await ledger.reserve([who], need({ holdByUnit: { Currency: 10, Tokens: 0 } }))
    ledger.settle(hold as never, usage({ costMicros: 10 }))
    await world.advance(300)
    const dear = await ledger.reserve([who], need({ holdByUnit: { Currency: 1, Tokens: 0 } }))
    expect(dear).toMatchObject({ outcome: 'refused', limit: 'budgetSpent' })
    expect(ledger.knownRefusal(who)).toBeUndefined()
  })
})

test('the state of the breaker of the store is known', async () => {
  const { world, ledger } = oneProcess()
  await ledger.reserve([limited], need())
  expect(ledger.breaker).toBe('closed')
  world.store.fail('never arrives')
  await ledger.reserve([subject({ uid: 'other', limits: { requestsPerMinute: 1 } })], need())
  expect(ledger.breaker).toBe('suspect')
  await ledger.close(0)
})
