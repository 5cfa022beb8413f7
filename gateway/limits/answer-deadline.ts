import type { Cancel, Clock } from '#platform/clock.ts'

/** Turns of the event loop, each of at least 1 ms, in which arrived answers are read before an answer counts as late. */
const LAST_TURNS = 3

/**
 * Calls `callback` when an answer is late. After a long turn Node runs timers before it reads arrived answers, and a request of a busy
 * process leaves a turn after its creation. So the deadline waits for some more turns; otherwise a busy process would mistake its own
 * delay for a delay of the other side.
 */
export function answerDeadline(clock: Clock, delayMs: number, callback: () => void): Cancel {
  let turns = LAST_TURNS
  const turn = (): void => {
    if (turns === 0) return callback()
    turns -= 1
    cancel = clock.after(1, turn)
  }
  let cancel = clock.after(delayMs - LAST_TURNS, turn)
  return () => cancel()
}
