import { sleep, type Clock } from '#platform/clock.ts'
import { ExponentialDelay } from '#platform/exponential-delay.ts'
import { isKubeError } from './port.ts'
import { StatusError } from './status-error.ts'

/** Total number of tries. A worker must not wait here: the caller has a queue with a back-off of its own. */
const TRIES = 2
const FIRST_MS = 400
/** If the server asks for a longer wait, the caller gets the error. */
const MAX_RETRY_AFTER_SECONDS = 1

/** Sources of time and of randomness. */
export interface RetryDeps {
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
}

/**
 * Sends a call that may safely be sent twice, and repeats it once after 429, 5xx or a broken connection. The delay is random over the whole
 * range ("full jitter"), so that many callers do not come back together, and never shorter than Retry-After.
 * @throws the last KubeError
 */
export async function retryIdempotent<T>({ clock, random }: RetryDeps, call: () => Promise<T>): Promise<T> {
  const delay = new ExponentialDelay({ firstMs: FIRST_MS, maxMs: FIRST_MS, below: 1, above: 0, random })
  for (let failures = 1; ; failures += 1) {
    try {
      return await call()
    } catch (error) {
      if (failures === TRIES || !isTransient(error)) throw error
      await sleep(clock, (error.retryAfterSeconds ?? 0) * 1000 + delay.next())
    }
  }
}

function isTransient(error: unknown): error is { readonly retryAfterSeconds: number | undefined } {
  if (!isKubeError(error, 'TooManyRequests', 'Unreachable')) return false
  if (error instanceof StatusError && error.versionTooLarge) return false // the caller must ask for a lower version; the same call would fail again
  return (error.retryAfterSeconds ?? 0) <= MAX_RETRY_AFTER_SECONDS
}
