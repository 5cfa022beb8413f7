import { beforeEach, expect, test } from 'vitest'
import { countsOf, MAX_REPORTED_ROWS, type UsageReport } from '#contract/usage/usage-report.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { MemoryUsage } from '../../standalone/memory-usage.ts'
import { UsageMeter } from './usage-meter.ts'
import { REPORT_EVERY_MS, UsageReporter, type UsageStore } from './usage-reporter.ts'

const DAY = 20_000
const call = { account: 'acme', key: 'k', model: 'llama' }
let clock: ManualClock
let meter: UsageMeter
let store: MemoryUsage
let lines: string[]

beforeEach(() => {
  clock = new ManualClock(DAY * 86_400_000 + 5_000)
  meter = new UsageMeter('p', clock)
  store = new MemoryUsage(() => clock.now())
  lines = []
})

function reporter(over: Partial<UsageStore> = {}): UsageReporter {
  const outage = { failed: (line: string) => void lines.push(line), works: () => undefined }
  const one = new UsageReporter({ meter, store: { count: (reports) => store.count(reports), ...over }, clock, outage })
  one.start()
  return one
}

async function taken(account = 'acme') {
  const [found] = await store.take([{ account, known: 0 }])
  return found?.state === 'rows' ? found.rows : []
}

test('calls of one key and model are one row, and refusals count by reason', async () => {
  reporter()
  meter.count(call, countsOf({ requests: 1, inputTokens: 10, outputTokens: 2, costMicros: 7 }))
  meter.count(call, countsOf({ requests: 1, inputTokens: 5, failed: 1 }))
  for (const row of ['modelDenied', 'requestsLimited', 'tokensLimited', 'budgetSpent', 'invalidJson'] as const) meter.refused(call, row)
  meter.count({ ...call, model: 'qwen' }, countsOf({ requests: 1 }))
  await clock.advance(REPORT_EVERY_MS)
  expect(await taken()).toEqual([
    {
      ...{ day: DAY, key: 'k', model: 'llama' },
      counts: countsOf({
        ...{ requests: 2, inputTokens: 15, outputTokens: 2, costMicros: 7, failed: 1 },
        ...{ refusedModel: 1, refusedRate: 2, refusedBudget: 1, refusedOther: 1 },
      }),
    },
    { day: DAY, key: 'k', model: 'qwen', counts: countsOf({ requests: 1 }) },
  ])
})

test('a report whose answer is lost counts once, and what comes meanwhile goes with the next one', async () => {
  let isLost = true
  reporter({
    count: async (reports) => {
      const counted = await store.count(reports)
      if (isLost) throw new Error('the answer is lost')
      return counted
    },
  })
  meter.count(call, countsOf({ requests: 1 }))
  await clock.advance(REPORT_EVERY_MS)
  meter.count(call, countsOf({ requests: 1 }))
  await clock.advance(3 * REPORT_EVERY_MS)
  expect(lines).toHaveLength(4)
  isLost = false
  await clock.advance(2 * REPORT_EVERY_MS)
  expect((await taken()).map(({ counts }) => counts[0])).toEqual([2])
  expect(meter.isEmpty).toBe(true)
})

test('calls count on the day on which they ended, also if the store was away over midnight', async () => {
  let isAway = true
  reporter({ count: (reports) => (isAway ? Promise.reject(new Error('away')) : store.count(reports)) })
  meter.count(call, countsOf({ requests: 1 }))
  await clock.advance(86_400_000)
  meter.count(call, countsOf({ requests: 1 }))
  isAway = false
  await clock.advance(2 * REPORT_EVERY_MS)
  expect((await taken()).map(({ day }) => day)).toEqual([DAY, DAY + 1])
})

test('more rows than fit into a report go in several reports', async () => {
  reporter()
  for (let at = 0; at < MAX_REPORTED_ROWS + 10; at += 1) meter.count({ ...call, key: `k${at}` }, countsOf({ requests: 1 }))
  await clock.advance(2 * REPORT_EVERY_MS)
  expect(await taken()).toHaveLength(MAX_REPORTED_ROWS + 10)
})

test('what was counted last is reported before the end of the process, and an end without a store never hangs', async () => {
  const one = reporter()
  meter.count(call, countsOf({ requests: 1 }))
  await one.stop()
  expect(await taken()).toHaveLength(1)
  const away = reporter({ count: (): Promise<readonly UsageReport[]> => Promise.reject(new Error('away')) })
  meter.count(call, countsOf({ requests: 1 }))
  await away.stop()
  expect(lines).toEqual(['usage of accounts waits in memory: away'])
})
