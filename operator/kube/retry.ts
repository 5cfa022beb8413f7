import { sleep, type Clock } from '../../gateway/shared/clock.ts'
import { isKubeError } from './port.ts'
import { StatusError } from './status-error.ts'

/** Tries in all. */
const TRIES = 5
const FIRST_MS = 200
const MAX_MS = 10_000
/** A server that asks for more is answered to the caller, who has a queue to wait in. */
const MAX_RETRY_AFTER_SECONDS = 30

/** Where time and chance come from. */
export interface RetryDeps {
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
}

/**
 * Runs a call that may safely be sent twice, up to 5 times, on 429, 5xx and a broken connection. Waits are drawn from the whole range
 * below the bound ("full jitter": many callers must not come back together) and never shorter than Retry-After.
 * @throws the last KubeError
 */
export async function retryIdempotent<T>(deps: RetryDeps, call: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await call()
    } catch (error) {
      const waitMs = failures < TRIES ? waitBefore(failures, error, deps.random) : undefined
      if (waitMs === undefined) throw error
      await sleep(deps.clock, waitMs)
    }
  }
}

/** @returns ms to wait, or undefined when another try is no use */
function waitBefore(failures: number, error: unknown, random: () => number): number | undefined {
  if (!isKubeError(error, 'TooManyRequests', 'Unreachable')) return undefined
  if (error instanceof StatusError && error.versionTooLarge) return undefined // asking for less is the cure, not asking again
  const askedSeconds = error.retryAfterSeconds ?? 0
  if (askedSeconds > MAX_RETRY_AFTER_SECONDS) return undefined
  return askedSeconds * 1000 + random() * Math.min(MAX_MS, FIRST_MS * 2 ** failures)
}
