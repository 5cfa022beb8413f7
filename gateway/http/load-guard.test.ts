import { expect, test } from 'vitest'
import { LoadGuard } from './load-guard.ts'

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
  guard.look()
  expect(guard.isOverloaded).toBe(false)
  medianMs = 71 // 50 beyond the sampling interval of 20
  guard.look()
  expect(guard.isOverloaded).toBe(true)
  medianMs = 69
  guard.look()
  expect(guard.isOverloaded).toBe(false)
  guard.stop()
})
