/**
 * Limits over four gateway processes on one Redis, with windows of 12 s, slots and leases of 0.2 s, and wall clocks that are wrong by up to
 * 5 s. Each process writes an admission down before it serves it; the windows slide over what all of them have written.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { LimitsLab } from '../support/limit-processes.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Admission, meanTokens, mostRequests, mostTokens, perWindow } from '../support/witnessed-ledger.ts'

const TIMING: LedgerTiming = { windowMs: 12_000, slotMs: 200, leaseMs: 200 }
const CLOCK_SHIFTS_MS = [0, 5_000, -5_000, 2_500]
const LIMIT = 300
const TOKENS = 4_200
const PERMITS = 4
const ROOM = 3
/** Micro-units, by key; a call with 12 tokens of output holds 192,000. */
const BUDGETS = { killed: 3_000_000, race: 650_000, overrun: 650_000 }
const WINDOW_S = TIMING.windowMs / 1_000
const TRIPLE = (3 * LIMIT) / WINDOW_S

const money = (amount: number) => ({
  budgets: [{ name: 'all', unit: 'Currency', window: 'Lifetime', timeZone: 'UTC', amount, onExceeded: 'Block' } as const],
})

let lab: LimitsLab

beforeAll(async () => {
  lab = await LimitsLab.start({
    timing: TIMING,
    clockShiftsMs: CLOCK_SHIFTS_MS,
    keys: {
      requests: { limits: { requestsPerMinute: LIMIT } },
      tokens: { limits: { tokensPerMinute: TOKENS } },
      killed: { limits: { requestsPerMinute: LIMIT, tokensPerMinute: 2 * TOKENS }, ...money(BUDGETS.killed) },
      running: { limits: { maxConcurrentRequests: PERMITS } },
      race: money(BUDGETS.race),
      overrun: money(BUDGETS.overrun),
    },
  })
})
afterAll(() => lab.stop())

const admitted = (uid: string): Admission[] => lab.admissions().filter((admission) => admission.uid === uid)

const cost = (admissions: readonly Admission[]): number =>
  admissions.reduce((sum, { heldMicros, costMicros = heldMicros }) => sum + costMicros, 0)

describe('at three times the limit, with one process killed', () => {
  test('L2 #16011, #20256, #27955, #28160: no rolling window exceeds it, nine tenths of it are used, and the permits of the killed process become free', async () => {
    const [dying, living] = lab.gateways
    const hanging = { directives: 'hang=1', stream: true }
    await Promise.all([dying!, dying!, living!].map((gateway) => lab.open(gateway, 'running', hanging)))
    const load = lab.load(
      [
        { uid: 'requests', perSecond: TRIPLE },
        { uid: 'tokens', perSecond: TRIPLE },
      ],
      6 * WINDOW_S,
    )
    await waitFor('a window of load', () => admitted('requests').length > LIMIT)
    await dying!.process.kill()
    expect(await lab.decided(living!, 'running')).toBe(200) // the fourth permit
    await freePermits()
    await load
    await lab.launch(dying!)

    const requests = admitted('requests')
    const tokens = admitted('tokens')
    expect(mostRequests(requests, TIMING.windowMs)).toBeLessThanOrEqual(LIMIT)
    expect(tokens.every(({ heldTokens, usedTokens = 0 }) => usedTokens <= heldTokens)).toBe(true)
    expect(mostTokens(tokens, TIMING.windowMs)).toBeLessThanOrEqual(TOKENS)
    expect(perWindow(requests, TIMING.windowMs, () => 1) / LIMIT).toBeGreaterThan(0.9)
    expect(meanTokens(tokens, TIMING.windowMs) / TOKENS).toBeGreaterThan(0.9)
  })

  async function freePermits(): Promise<void> {
    const other = lab.gateways[2]!
    const two = async (): Promise<boolean> => {
      const calls = Array.from({ length: PERMITS - 1 }, () => lab.call(other, 'running', { directives: 'delay=300' }))
      return (await Promise.all(calls)).every((status) => status === 200)
    }
    await waitFor('the permits of the dead process', two, { everyMs: 250 })
  }
})

describe('with a process killed every 2 s', () => {
  test('L2 no rolling window exceeds its limit, and no admitted cost is missing from the budget', async () => {
    const load = lab.load([{ uid: 'killed', perSecond: TRIPLE }], 2 * WINDOW_S + 2)
    for (const gateway of lab.gateways) {
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      await gateway.process.kill()
      void lab.launch(gateway)
    }
    await load
    const admissions = admitted('killed')
    expect(admissions.length).toBeGreaterThan(50)
    expect(mostRequests(admissions, TIMING.windowMs)).toBeLessThanOrEqual(LIMIT)
    expect(mostTokens(admissions, TIMING.windowMs)).toBeLessThanOrEqual(2 * TOKENS)
    expect(cost(admissions)).toBeLessThanOrEqual(BUDGETS.killed)
    expect(await counted('killed')).toBeGreaterThanOrEqual(cost(admissions))
  })
})

describe('50 requests at once against a budget with room for three', () => {
  test.each([
    ['cost at most what they hold: the amount is not exceeded', 'race', 12, 'words=12'],
    ['cost more than they hold: no more is spent beyond the amount than their excess', 'overrun', undefined, 'words=400'],
  ])('three run, and %s', async (_, uid, maxTokens, directives) => {
    const statuses = await lab.race(
      Array.from({ length: 50 }, () => uid),
      { maxTokens, directives },
    )
    // a gateway settles after the last byte of its answer, so the client may be first
    await waitFor('the calls to be settled', () => admitted(uid).every(({ endedAtMs }) => endedAtMs !== undefined))
    const admissions = admitted(uid)
    expect(admissions).toHaveLength(ROOM)
    expect(statuses.filter((status) => status === 200)).toHaveLength(ROOM)
    expect(statuses.filter((status) => status === 402 || status === 429)).toHaveLength(50 - ROOM)
    const excess = admissions.reduce((sum, { heldMicros, costMicros = 0 }) => sum + Math.max(0, costMicros - heldMicros), 0)
    expect(excess > 0).toBe(uid === 'overrun')
    const amount = admissions.reduce((sum, { heldMicros }) => sum + heldMicros, 0)
    expect(amount).toBeGreaterThan((BUDGETS[uid as keyof typeof BUDGETS] * (ROOM - 1)) / ROOM) // a further call would not fit
    await waitFor('the costs to be counted', async () => (await counted(uid)) >= cost(admissions))
    expect(await counted(uid)).toBeLessThanOrEqual(BUDGETS[uid as keyof typeof BUDGETS] + excess)
  })
})

async function counted(uid: string): Promise<number> {
  const fields = await lab.redis.hash(ledgerKeys('hg', uid).budget)
  const sums = Object.entries(fields).filter(([name]) => /:[sHu]$/.test(name))
  return sums.reduce((sum, [, value]) => sum + Number(value), 0)
}
