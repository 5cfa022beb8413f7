import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bookingSlot, longestLeaseMs, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { RollingWindow } from './rolling-window.ts'

/** `SEED=… make property` repeats a run; `LEDGER_RUNS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = Number(process.env.LEDGER_RUNS ?? 10_000)

const TIMING: LedgerTiming = { windowMs: 6_000, slotMs: 100, leaseMs: 100 }
const LIMIT = 50

interface Grant {
  readonly atMs: number
  readonly leaseMs: number
  readonly slot: number
  /** Used units by the time of use. */
  readonly used: Array<readonly [atMs: number, amount: number]>
  left: number
}

const step = fc.record({
  afterMs: fc.oneof(fc.nat({ max: 150 }), fc.nat({ max: 9_000 })),
  need: fc.integer({ min: 1, max: 30 }),
  leaseMs: fc.constantFrom(5, 100, 1_000),
  use: fc.nat({ max: 40 }),
  refund: fc.boolean(),
})

/** Spends leases as late as they allow, which is the worst case for a window. */
function useLate(grants: readonly Grant[], fromMs: number, toMs: number): void {
  for (const grant of grants) {
    const lastMs = grant.atMs + grant.leaseMs - 1
    if (lastMs < fromMs || lastMs >= toMs || grant.left === 0) continue
    grant.used.push([lastMs, grant.left])
    grant.left = 0
  }
}

function mostInOneWindow(grants: readonly Grant[]): number {
  const uses = grants.flatMap(({ used }) => used)
  const sums = uses.map(([end]) =>
    uses.filter(([at]) => at > end - TIMING.windowMs && at <= end).reduce((sum, [, amount]) => sum + amount, 0),
  )
  return Math.max(0, ...sums)
}

test(`a ring of slots admits no more than the limit in any rolling window, its total is the sum of its slots, and waits are kept (SEED=${SEED})`, () => {
  const property = fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
    const ring = new RollingWindow(TIMING)
    const grants: Grant[] = []
    let now = 1_768_435_170_250
    for (const { afterMs, need, leaseMs, use, refund } of steps) {
      useLate(grants, now, now + afterMs)
      now += afterMs
      ring.sweep(now)
      if (ring.waitMs(need, LIMIT, now) === 0) {
        const slot = bookingSlot(now, leaseMs, TIMING)
        ring.book(slot, need, now)
        const used = Math.min(use, need)
        grants.push({ atMs: now, leaseMs, slot, used: [[now, used]], left: need - used })
        const grant = grants.at(-1)!
        if (refund) {
          ring.refund(slot, grant.left)
          grant.left = 0
        }
      } else {
        const waitMs = ring.waitMs(need, LIMIT, now)
        const later = now + waitMs
        useLate(grants, now, later)
        now = later
        ring.sweep(now)
        expect(LIMIT - ring.total).toBeGreaterThanOrEqual(need)
      }
      expect(ring.total).toBe([...ring.slots.values()].reduce((sum, amount) => sum + amount, 0))
      expect(ring.total).toBeGreaterThanOrEqual(0)
    }
    useLate(grants, now, Infinity)
    expect(mostInOneWindow(grants)).toBeLessThanOrEqual(LIMIT)
    ring.sweep(now + TIMING.windowMs + longestLeaseMs(TIMING) + TIMING.slotMs)
    expect(ring.total).toBe(0)
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})
