import type { Cancel, Clock } from '../process/clock.ts'

/** Turns of the loop in which what has come is read before it counts as missing, each of at least 1 ms. */
const LAST_TURNS = 3

/**
 * Calls `callback` when an answer is late. After a turn that took long, Node runs timers before it reads what has come, and a request of a busy
 * process leaves a turn later than it was made: therefore the end comes with some turns before it, or a busy process would take its own
 * delay for the other side's.
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
