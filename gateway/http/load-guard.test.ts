import { expect, test } from 'vitest'
import { callsWithin, LoadGuard, MAX_CALLS } from './load-guard.ts'

test('an event loop that is slow most of the time sheds the next window, and a quick one ends it', () => {
  let medianMs = 20
  const guard = new LoadGuard(
    () => 0,
    { maxCalls: 10, maxLoopDelayMs: 50, windowMs: 60_000 },
    {
      percentile: (percentile) => (percentile === 50 ? medianMs : 5_000) * 1e6,
      reset: () => undefined,
    },
  )
  guard.measure()
  expect(guard.isOverloaded).toBe(false)
  medianMs = 71 // 50 beyond the sampling interval of 20
  guard.measure()
  expect(guard.isOverloaded).toBe(true)
  medianMs = 69
  guard.measure()
  expect(guard.isOverloaded).toBe(false)
  guard.stop()
})

const QUICK = { percentile: () => 0, reset: () => undefined }

test('a process whose calls are all taken sheds, until there is room', () => {
  let calls = 10
  const guard = new LoadGuard(() => calls, { maxCalls: 10, windowMs: 60_000 }, QUICK)
  expect(guard.isOverloaded).toBe(true)
  calls = 9
  expect(guard.isOverloaded).toBe(false)
  guard.stop()
})

test('the limit of open files bounds the calls, with a line in the log, and too few files refuse the start', () => {
  const lines: unknown[] = []
  const write = (fields: unknown): void => void lines.push(fields)
  const log = { debug: write, info: write, warn: write, error: write }
  expect([callsWithin(Infinity, log), callsWithin(1_048_576, log), lines.length]).toEqual([MAX_CALLS, MAX_CALLS, 0])
  expect(callsWithin(20_000, log)).toBe(9_500)
  expect(lines).toEqual([{ openFiles: 20_000, calls: 9_500, wanted: 41_000 }])
  expect(() => callsWithin(1_024, log)).toThrow('the limit of open files is 1024, too few for calls; raise it (ulimit -n) to 41000')
})
