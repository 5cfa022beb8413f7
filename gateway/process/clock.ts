/** Cancels a pending callback; harmless when it has run. */
export type Cancel = () => void

/** Time as a process sees it. Passed in, so that tests decide what time it is. */
export interface Clock {
  /** Wall clock, ms since 1970: for expiry and for what is written down, never for measuring. */
  now(): number
  /** ms that only grow, from an unknown origin: for deadlines and durations. */
  monotonic(): number
  /** Calls `callback` once after `delayMs`; does not keep the process alive by itself. */
  after(delayMs: number, callback: () => void): Cancel
}

/** Longest delay that a Node timer keeps (2^31 - 1 ms, 24.8 days); above it fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** The machine's clock. A delay above 24.8 days is cut to that; callers look again when it fires. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/**
 * Waits `delayMs`.
 * @returns early, without an error, when `signal` aborts: look at the signal afterwards
 */
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
