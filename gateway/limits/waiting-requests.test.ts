import { expect, test } from 'vitest'
import { settle } from '../../test/support/manual-clock.ts'
import { budget, need, oneProcess, subject } from '../../test/support/ledger-world.ts'

test('a request that arrives during a call gets its permit from the next calls', async () => {
  const { world, ledger } = oneProcess()
  const two = subject({ limits: { maxConcurrentRequests: 2 } })
  world.store.fate = () => 'hangs'
  const first = ledger.reserve([two], need())
  await settle()
  const second = ledger.reserve([two], need())
  world.store.fate = () => 'works'
  world.store.hanging[0]?.()
  expect([(await first).outcome, (await second).outcome]).toEqual(['held', 'held'])
  expect(world.store.calls.length).toBeLessThanOrEqual(3)
})

test('requests that arrive during a call share the next call', async () => {
  const { world, ledger } = oneProcess()
  const limited = subject({ limits: { requestsPerMinute: 100, maxConcurrentRequests: 50 } })
  world.store.fate = () => 'hangs'
  const first = ledger.reserve([limited], need())
  await settle()
  const later = Array.from({ length: 20 }, () => ledger.reserve([limited], need()))
  world.store.fate = () => 'works'
  world.store.hanging[0]?.()
  const verdicts = await Promise.all([first, ...later])
  expect(verdicts.every(({ outcome }) => outcome === 'held')).toBe(true)
  expect(world.store.calls.filter(({ permits }) => permits && permits.need > 0)).toHaveLength(2)
})

test('all waiting requests get a refusal when the running call is late, whenever they arrived', async () => {
  const { world, ledger } = oneProcess()
  const limited = subject({ limits: { requestsPerMinute: 10 } })
  world.store.fate = () => 'hangs'
  const first = ledger.reserve([limited], need())
  await world.advance(30)
  const second = ledger.reserve([limited], need())
  await world.advance(20)
  expect(await Promise.all([first, second])).toMatchObject([
    { outcome: 'unavailable', reason: 'store' },
    { outcome: 'unavailable', reason: 'store' },
  ])
})

test('a snapshot read during a call gets the next answer, which contains every budget', async () => {
  const { world, ledger } = oneProcess()
  const who = subject({
    limits: { requestsPerMinute: 5 },
    budgets: [budget(), budget({ name: 'day', window: 'Day', onExceeded: 'Audit' })],
  })
  world.memory.seed(who.uid, 'seed')
  world.store.fate = () => 'hangs'
  const held = ledger.reserve([who], need())
  await settle()
  const read = ledger.snapshot(who)
  world.store.fate = () => 'works'
  world.store.hanging[0]?.()
  await held
  expect((await read).budgets.map(({ name }) => name)).toEqual(['month', 'day'])
})
