import type { Cancel, Clock } from '../process/clock.ts'

/** A timer that fires this much too late, ms, was held up by the process itself. */
const STALL_MS = 5

/**
 * Calls `callback` when an answer is late. After a turn that took long, Node runs timers before it reads what has come: the answer then gets
 * one more turn, since the delay was not the other side's.
 */
export function answerDeadline(clock: Clock, delayMs: number, callback: () => void): Cancel {
  const dueMs = clock.monotonic() + delayMs
  let cancel = clock.after(delayMs, () => {
    if (clock.monotonic() - dueMs < STALL_MS) return callback()
    cancel = clock.after(1, callback)
  })
  return () => cancel()
}
