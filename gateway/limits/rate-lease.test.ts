import { expect, test } from 'vitest'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { RateLease } from './rate-lease.ts'

const LIMIT = 1_000_000

test('calls for other reasons bring no small leases beside the present one', () => {
  const lease = new RateLease('t', LEDGER_TIMING)
  lease.limit = LIMIT
  let now = 1_000
  let number = 0
  const call = (first: number): void => {
    const asked = lease.request({ first, all: first }, now)
    if (!asked) throw new Error('a limit asks')
    const grant = Math.max(asked.ask, asked.want)
    lease.granted(
      { grant, slot: 100, rest: LIMIT, resetMs: 0, waitMs: 0 },
      { number: (number += 1), sentAt: now, leaseMs: asked.leaseMs },
      now,
    )
  }
  for (let request = 0; request < 2_000; request += 1) {
    call(lease.available(now) < 100 ? 100 : 0) // each request asks the store, for a budget
    lease.take(100, now)
    now += 10
    if (request % 25 === 0) lease.tick(now, 0)
  }
  expect(lease.bookings.filter(({ expiresAt }) => expiresAt > now).length).toBeLessThan(20)
})

test.each([
  { limit: 3, rest: 1, isRoomy: false },
  { limit: 30, rest: 9, isRoomy: false },
  { limit: 30, rest: 10, isRoomy: true },
  { limit: 1_000, rest: 249, isRoomy: false },
])('units of a limit of $limit with $rest free can wait to go back: $isRoomy', ({ limit, rest, isRoomy }) => {
  const lease = new RateLease('r', LEDGER_TIMING)
  lease.limit = limit
  lease.granted({ grant: 1, slot: 100, rest, resetMs: 0, waitMs: 0 }, { number: 1, sentAt: 0, leaseMs: 50 }, 0)
  expect(lease.isRoomy).toBe(isRoomy)
})

test.each([
  { what: 'a demand far below the limit', perSecond: 100, leaseMs: 10_000 },
  { what: 'a demand that would use more than half of the limit', perSecond: 12_000, leaseMs: 1_000 },
])('$what leases for $leaseMs ms while half of the limit is free, since its units count that much longer', ({ perSecond, leaseMs }) => {
  const lease = new RateLease('r', LEDGER_TIMING)
  lease.limit = LIMIT
  let now = 0
  lease.granted({ grant: 1, slot: 100, rest: LIMIT, resetMs: 0, waitMs: 0 }, { number: 1, sentAt: now, leaseMs: 50 }, now)
  for (let tick = 0; tick < 8; tick += 1) {
    for (let taken = 0; taken < 5; taken += 1) lease.take(perSecond / 20, now)
    now += 250
    lease.tick(now, 0)
  }
  expect(lease.request({ first: 0, all: 0 }, now)?.leaseMs).toBe(leaseMs)
})
