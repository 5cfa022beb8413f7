import { beforeEach, expect, test } from 'vitest'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { FakeLedgerStore } from '../../test/support/fake-ledger-store.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { LedgerCensus } from './ledger-census.ts'
import { ProcessWatch } from './process-watch.ts'
import { StoreTime } from './store-time.ts'

const HOUR_MS = 3_600_000
const TODAY = Date.UTC(2026, 2, 15)
const DAY: BudgetRecord = { name: 'day', unit: 'Tokens', amount: 100, window: 'Day', timeZone: 'UTC', onExceeded: 'Block' }
const FIELD = `day:Tokens:Day:${TODAY}`

let clock: ManualClock
let store: FakeLedgerStore
let processes: ProcessWatch
let census: LedgerCensus
let reaped: number

/** Runs a turn at this time after the start, which was today at noon. */
function turn(atMs: number): Promise<void> {
  clock.skip(atMs - clock.monotonic())
  return census.turn()
}

beforeEach(async () => {
  clock = new ManualClock(TODAY + HOUR_MS * 12)
  store = new FakeLedgerStore(() => clock.now())
  await store.prepare()
  processes = new ProcessWatch()
  reaped = 0
  const metrics = { reaped: (holds: number) => void (reaped += holds) }
  const time = new StoreTime(store, clock)
  census = new LedgerCensus({
    store,
    clock,
    time,
    subjects: { budgetsOf: () => [DAY] },
    metrics,
    processes,
    uids: () => store.budgets.keys(),
  })
})

test('the recorded spend of a process is dropped two hours after its end, and not earlier', async () => {
  await store.seed([{ subject: 'a', checkpoints: [] }])
  store.hold('a', FIELD, 'ended', 5)
  await turn(0) // an unknown process counts as alive until now
  const spenders = async (atMs: number): Promise<string[]> => {
    processes.observe([], new Set(), atMs)
    await turn(atMs)
    return [...(store.budgets.get('a')?.spenders ?? [])]
  }
  expect([await spenders(HOUR_MS), await spenders(2 * HOUR_MS)]).toEqual([['ended'], []])
})

test('windows are dropped one window after their end, and damaged budgets at once', async () => {
  const old = `day:Tokens:Day:${TODAY - 3 * 24 * HOUR_MS}`
  await store.seed([
    { subject: 'a', checkpoints: [[FIELD, 1] as const, [old, 2] as const] },
    { subject: 'damaged', checkpoints: [] },
  ])
  store.budgets.get('damaged')!.isDamaged = true
  await turn(0)
  expect([[...(store.budgets.get('a')?.windows.keys() ?? [])], store.budgets.has('damaged')]).toEqual([[FIELD], false])
})

test('a turn takes a thousand keys, and the next turn takes the same keys after a failure of the store', async () => {
  const subjects = Array.from({ length: 2_500 }, (_, at) => ({ subject: `s${at}`, checkpoints: [] }))
  await store.seed(subjects)
  for (const { subject } of subjects) store.budgets.get(subject)!.isDamaged = true
  const left = async (atMs: number): Promise<number> => {
    await turn(atMs).catch(() => undefined)
    return store.budgets.size
  }
  expect(await left(0)).toBe(1_500)
  store.isDown = true
  expect(await left(1_000)).toBe(1_500)
  store.isDown = false
  expect([await left(2_000), await left(3_000), await left(4_000)]).toEqual([500, 0, 0])
})
