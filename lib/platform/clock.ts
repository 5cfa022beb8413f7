/** Cancels a pending callback. It has no effect when the callback has run. */
export type Cancel = () => void

/** The clock of a process. It is passed in, so that tests can set the time. */
export interface Clock {
  /** Wall clock, ms since 1970, for expiry and for stored times. Never use it to measure durations. */
  now(): number
  /** Monotonic clock, ms from an unknown origin, for deadlines and durations. */
  monotonic(): number
  /** Calls `callback` once after `delayMs`. A pending callback does not keep the process alive. */
  after(delayMs: number, callback: () => void): Cancel
}

/** Longest delay of a Node timer (2^31 - 1 ms, 24.8 days). A timer with a longer delay would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** The machine's clock. It cuts delays above 24.8 days to that length; callers check the time again when it fires. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Yields to other work in the middle of a long loop. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Waits `delayMs`. @returns early, without an error, when `signal` aborts; callers check the signal afterwards */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const finish = (): void => {
      cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const cancel = clock.after(delayMs, finish)
    signal?.addEventListener('abort', finish, { once: true })
  })
}
