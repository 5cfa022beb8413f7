import { expect, test } from 'vitest'
import { LedgerWorld, need, oneProcess, subject } from '../../test/support/ledger-world.ts'
import { LeaseLedger } from './lease-ledger.ts'

test('units of a late answer are returned: a pod that has used its own share in the meantime does not exceed the limit', async () => {
  const { world, ledger } = oneProcess()
  const shared = subject({ limits: { requestsPerMinute: 40 }, onStoreUnavailable: 'LocalShare' })
  let admitted = 0
  const call = async (): Promise<string> => {
    const verdict = ledger.reserve([shared], need())
    await world.advance(verdict instanceof Promise ? 60 : 0)
    const { outcome } = await verdict
    if (outcome === 'held') admitted += 1
    return outcome
  }
  for (let i = 0; i < 10; i += 1) {
    await call() // a steady demand, so that each call leases more than one request needs
    await world.advance(300)
  }
  world.store.fail('hangs')
  for (let i = 0; i < 60; i += 1) await call()
  expect(admitted).toBe(40)
  world.store.recover()
  for (const late of world.store.hanging) late()
  for (let i = 0; i < 100; i += 1) {
    expect(await call(), `${i}`).not.toBe('held')
    await world.advance(50)
  }
})

test('units granted under a limit that was lowered during the call are returned', async () => {
  const { world, ledger } = oneProcess()
  const limited = (requestsPerMinute: number): ReturnType<typeof subject> => subject({ limits: { requestsPerMinute } })
  let admitted = 0
  const call = async (verdict: ReturnType<typeof ledger.reserve>): Promise<void> => {
    if ((await verdict).outcome === 'held') admitted += 1
  }
  for (let i = 0; i < 3; i += 1) await call(ledger.reserve([limited(20)], need()))
  world.store.fate = () => 'hangs'
  await world.advance(260) // the demand is steady, so more units are asked for ahead
  expect(world.store.hanging).toHaveLength(1)
  const later = [limited(1), limited(1)].map((lowered) => call(ledger.reserve([lowered], need())))
  world.store.fate = () => 'works'
  for (const answer of world.store.hanging.splice(0)) answer()
  await world.advance(60)
  await Promise.all(later)
  expect(admitted).toBe(3)
})

test('a process that is too busy to read its answer in time admits the request that the answer granted', async () => {
  const { clock, store } = new LedgerWorld()
  let busyMs = 0
  store.before = () => (busyMs += 60) // longer than the lease, and no timer runs meanwhile
  const busy = { now: () => clock.now() + busyMs, monotonic: () => clock.monotonic() + busyMs, after: clock.after.bind(clock) }
  const ledger = new LeaseLedger({ store, clock: busy, process: 'busy', live: () => 1 })
  const key = subject({ limits: { tokensPerMinute: 110 } })
  expect(await ledger.reserve([key], need({ tokens: 105 }))).toMatchObject({ outcome: 'held' })
  expect(await ledger.reserve([key], need({ tokens: 105 }))).toMatchObject({ outcome: 'refused' })
})
