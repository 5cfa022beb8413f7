/**
 * What the keys of an account share, over four gateway processes on one Redis with wall clocks that are wrong by up to 5 s. Windows have 12 s,
 * slots and leases 0.2 s. Each process writes an admission down before it serves it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { numbered } from '../support/at-once.ts'
import { LimitsLab } from '../support/limit-processes.ts'
import { waitFor } from '../support/wait-for.ts'
import { type Admission, meanTokens, mostRequests, mostTokens, perWindow } from '../support/witnessed-ledger.ts'

const TIMING: LedgerTiming = { windowMs: 12_000, slotMs: 200, leaseMs: 200 }
const CLOCK_SHIFTS_MS = [0, 5_000, -5_000, 2_500]
const WINDOW_S = TIMING.windowMs / 1_000
const LIMIT = 300
const TOKENS = 4_200
const KEYS = 20
/** The own limit of a key, which its calls of the whole test would just use up. */
const OWN = 40
/** Room for three of the calls below, which hold 192,000 micro-units each. */
const AMOUNT = 650_000
const ROOM = 3

const byRequests = numbered('by-requests', KEYS)
const byTokens = numbered('by-tokens', KEYS)
const racing = numbered('race', 5)

let lab: LimitsLab

beforeAll(async () => {
  const own = (account: string) => ({ account, limits: { requestsPerMinute: 100_000 } })
  lab = await LimitsLab.start({
    timing: TIMING,
    clockShiftsMs: CLOCK_SHIFTS_MS,
    accounts: {
      requests: { limits: { requestsPerMinute: LIMIT } },
      tokens: { limits: { tokensPerMinute: TOKENS } },
      poor: { budgets: [{ name: 'all', unit: 'Currency', window: 'Lifetime', timeZone: 'UTC', amount: AMOUNT, onExceeded: 'Block' }] },
      closed: { limits: { maxConcurrentRequests: 1 } },
    },
    keys: {
      ...Object.fromEntries(byRequests.map((uid) => [uid, own('requests')])),
      ...Object.fromEntries(byTokens.map((uid) => [uid, { account: 'tokens' }])), // without limits of their own, for which a process would ask too
      ...Object.fromEntries(racing.map((uid) => [uid, own('poor')])),
      waiting: { account: 'closed', limits: { requestsPerMinute: OWN } },
      holding: own('closed'),
    },
  })
})
afterAll(() => lab.stop())

const admitted = (uids: readonly string[]): Admission[] => lab.admissions().filter(({ uid }) => uids.includes(uid))

describe('at three times the limits of an account, from twenty keys, with one process killed', () => {
  test('no rolling window of all keys together exceeds them, and most of them is used', async () => {
    const perSecond = (3 * LIMIT) / WINDOW_S / KEYS
    const load = lab.load(
      [...byRequests, ...byTokens].map((uid) => ({ uid, perSecond })),
      6 * WINDOW_S,
    )
    await waitFor('a window of load', () => admitted(byRequests).length > LIMIT)
    await lab.gateways[0]!.process.kill()
    await load
    await lab.launch(lab.gateways[0]!)
    const [requests, tokens] = [admitted(byRequests), admitted(['tokens'])]
    expect(mostRequests(requests, TIMING.windowMs)).toBeLessThanOrEqual(LIMIT)
    expect(mostTokens(tokens, TIMING.windowMs)).toBeLessThanOrEqual(TOKENS)
    expect(perWindow(requests, TIMING.windowMs, () => 1) / LIMIT).toBeGreaterThan(0.9)
    expect(meanTokens(tokens, TIMING.windowMs) / TOKENS).toBeGreaterThan(0.8) // so few calls in 12 s leave more unused than in a minute
    expect(new Set(requests.map(({ uid }) => uid)).size).toBe(KEYS)
  })
})

describe('a call that the account refuses', () => {
  test('takes nothing of the own limit of its key', async () => {
    const [first, second] = lab.gateways
    const held = await waitFor('an answer other than 503', async () => {
      const answer = await lab.open(first!, 'holding', { directives: 'hang=1', stream: true })
      return answer.status !== 503 && answer
    })
    expect(held.status).toBe(200)
    for (let at = 0; at < 2 * OWN; at += 1) expect([429, 503]).toContain(await lab.call(at % 2 === 0 ? first! : second!, 'waiting'))
    await held.body?.cancel()
    const served = async (): Promise<boolean> => (await lab.call(second!, 'waiting')) === 200
    await waitFor('the permit to be free', served, { everyMs: 50 })
    let more = 0
    while (more < OWN - 1 && (await lab.decided(second!, 'waiting')) === 200) more += 1
    expect(more).toBeGreaterThan(OWN / 2)
  })
})

describe('50 requests at once, over five keys, against a budget of the account with room for three', () => {
  test('three run, and no more is spent than the amount', async () => {
    const uids = Array.from({ length: 50 }, (_, at) => racing[at % racing.length] ?? '')
    const statuses = await lab.race(uids, { maxTokens: 12, directives: 'words=12' })
    await waitFor('the calls to be settled', () => admitted(racing).every(({ endedAtMs }) => endedAtMs !== undefined))
    const admissions = admitted(racing)
    expect(statuses.filter((status) => status === 200)).toHaveLength(ROOM)
    expect(statuses.filter((status) => status === 402 || status === 429)).toHaveLength(50 - ROOM)
    expect(admissions.reduce((sum, { costMicros = 0 }) => sum + costMicros, 0)).toBeLessThanOrEqual(AMOUNT)
  })
})
