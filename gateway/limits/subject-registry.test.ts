import { expect, test } from 'vitest'
import { LedgerWorld, need, subject, usage } from '../../test/support/ledger-world.ts'

const SUBJECTS = 4_000

test('what thousands of subjects have to tell leaves in small parts, so that no request waits for all of them', async () => {
  const world = new LedgerWorld()
  const ledger = world.process()
  const subjects = Array.from({ length: SUBJECTS }, (_, at) => subject({ uid: `key-${at}`, limits: { requestsPerMinute: 1_000 } }))
  await Promise.all(
    subjects.map(async (one) => {
      const verdict = await ledger.reserve([one], need())
      if (verdict.outcome === 'held') ledger.settle(verdict, usage())
    }),
  )
  const told = new Set<string>()
  const before = world.store.calls.length
  let most = 0
  for (let ms = 0; ms < 20_000; ms += 5) {
    const already = world.store.calls.length
    await world.advance(5)
    most = Math.max(most, world.store.calls.length - already)
  }
  for (const { subject: uid } of world.store.calls.slice(before)) told.add(uid)
  expect(told.size).toBe(SUBJECTS)
  expect(most).toBeLessThanOrEqual(20)
})
