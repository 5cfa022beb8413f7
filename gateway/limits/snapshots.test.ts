import { expect, test } from 'vitest'
import { LedgerWorld, need, oneProcess, subject } from '../../test/support/ledger-world.ts'

const limited = subject({ limits: { requestsPerMinute: 10 } })

test('clients that ask in a loop cost the store one call a second, and all of them see the same', async () => {
  const { world, ledger } = oneProcess()
  const seen = await Promise.all(Array.from({ length: 100 }, () => ledger.snapshot(limited)))
  expect(new Set(seen).size).toBe(1)
  expect(world.store.calls).toHaveLength(1)
  await ledger.reserve([limited], need())
  const calls = world.store.calls.length
  await world.advance(999)
  expect((await ledger.snapshot(limited)).requests?.remaining).toBe(10)
  await world.advance(1)
  expect((await ledger.snapshot(limited)).requests?.remaining).toBe(9)
  expect(world.store.calls.length - calls).toBeLessThanOrEqual(2)
})

test('changed limits are read at once', async () => {
  const world = new LedgerWorld()
  const ledger = world.process()
  await ledger.snapshot(limited)
  expect((await ledger.snapshot(subject({ limits: { requestsPerMinute: 4 } }))).requests).toMatchObject({ limit: 4, remaining: 4 })
})

test('every waiting client gets a failure, and the ledger does not keep it', async () => {
  const world = new LedgerWorld()
  const ledger = world.process()
  world.store.fate = () => 'never arrives'
  await expect(ledger.snapshot(limited)).rejects.toThrow(/does not answer/)
  world.store.fate = () => 'works'
  await world.advance(200)
  expect((await ledger.snapshot(limited)).requests?.remaining).toBe(10)
})
