import type { Clock } from '../../gateway/shared/clock.ts'

/** How much faster than the wall. */
const SPEED = 50

/** Fifty times as fast as the wall: waits of seconds cost a test some milliseconds. `now` is the wall's. */
export const hurriedClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now() * SPEED,
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs / SPEED)
    return () => clearTimeout(timer)
  },
}
