import { expect, test } from 'vitest'
import { LedgerWorld, need, oneProcess, subject } from '../../test/support/ledger-world.ts'
import { SnapshotCache } from './snapshot-cache.ts'

const limited = subject({ limits: { requestsPerMinute: 10 } })

test('clients that ask in a loop cost the store one call a second, and all of them see the same', async () => {
  const { world, ledger } = oneProcess()
  const cache = new SnapshotCache(ledger, world.clock)
  const seen = await Promise.all(Array.from({ length: 100 }, () => cache.of(limited)))
  expect(new Set(seen).size).toBe(1)
  expect(world.store.calls).toHaveLength(1)
  await ledger.reserve([limited], need())
  const calls = world.store.calls.length
  await world.advance(999)
  expect((await cache.of(limited)).snapshot.requests?.remaining).toBe(10)
  await world.advance(1)
  expect((await cache.of(limited)).snapshot.requests?.remaining).toBe(9)
  expect(world.store.calls.length - calls).toBeLessThanOrEqual(2)
})

test('changed limits are read at once', async () => {
  const world = new LedgerWorld()
  const cache = new SnapshotCache(world.process(), world.clock)
  await cache.of(limited)
  expect((await cache.of(subject({ limits: { requestsPerMinute: 4 } }))).snapshot.requests).toMatchObject({ limit: 4, remaining: 4 })
})

test('every waiting client gets a failure, and the cache does not keep it', async () => {
  const world = new LedgerWorld()
  const cache = new SnapshotCache(world.process(), world.clock)
  world.store.fate = () => 'never arrives'
  await expect(cache.of(limited)).rejects.toThrow(/does not answer/)
  world.store.fate = () => 'works'
  await world.advance(200)
  expect((await cache.of(limited)).snapshot.requests?.remaining).toBe(10)
})
