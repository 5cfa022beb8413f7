import { expect, test } from 'vitest'
import { LoadGuard } from './load-guard.ts'

test('a slow event loop sheds the next window, and a quick one ends it', () => {
  let p99Ms = 20
  const guard = new LoadGuard(
    { maxInFlight: 10, maxLoopDelayMs: 50, windowMs: 60_000 },
    { percentile: () => p99Ms * 1e6, reset: () => undefined },
  )
  guard.look()
  expect(guard.isOverloaded).toBe(false)
  p99Ms = 71 // 50 beyond the sampling interval of 20
  guard.look()
  expect(guard.isOverloaded).toBe(true)
  p99Ms = 69
  guard.look()
  expect(guard.isOverloaded).toBe(false)
  guard.stop()
})

test('requests in flight up to the bound are taken', () => {
  const guard = new LoadGuard({ maxInFlight: 2, maxLoopDelayMs: 50, windowMs: 60_000 })
  guard.began()
  expect(guard.isOverloaded).toBe(false)
  guard.began()
  expect(guard.isOverloaded).toBe(true)
  guard.ended()
  expect(guard.isOverloaded).toBe(false)
  guard.stop()
})
