import type { Cancel, Clock } from '../process/clock.ts'

/** Time in which a loop reads what has come, ms: one turn. */
const LAST_TURN_MS = 1

/**
 * Calls `callback` when an answer is late. After a turn that took long, Node runs timers before it reads what has come: therefore the end comes
 * in two steps with a turn between them, or a busy process would take its own delay for the other side's.
 */
export function answerDeadline(clock: Clock, delayMs: number, callback: () => void): Cancel {
  let cancel = clock.after(delayMs - LAST_TURN_MS, () => {
    cancel = clock.after(LAST_TURN_MS, callback)
  })
  return () => cancel()
}
