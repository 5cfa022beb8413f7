import { sleep, type Clock } from '../../gateway/process/clock.ts'
import { ExponentialDelay } from '../loop/exponential-delay.ts'
import { isKubeError } from './port.ts'
import { StatusError } from './status-error.ts'

/** Tries in all. The caller has a queue with a back-off of its own; a worker must not wait here. */
const TRIES = 2
const FIRST_MS = 400
/** A server that asks for a longer wait is answered to the caller. */
const MAX_RETRY_AFTER_SECONDS = 1

/** Where time and chance come from. */
export interface RetryDeps {
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
}

/**
 * Sends a call that may safely be sent twice again after 429, 5xx and a broken connection, once. The delay is drawn from the whole range
 * below its bound ("full jitter": many callers must not come back together) and never shorter than Retry-After.
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
  if (error instanceof StatusError && error.versionTooLarge) return false // a lower version is the remedy, not the same call
  return (error.retryAfterSeconds ?? 0) <= MAX_RETRY_AFTER_SECONDS
}
