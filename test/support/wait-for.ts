/** Waits for a condition. The deadline only catches hangs, and its message names the last state. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Only catches hangs, also on a machine with other work, ms. */
const HANG_MS = 90_000

export interface WaitOptions {
  readonly deadlineMs?: number
  readonly everyMs?: number
}

/**
 * Polls until `probe` returns a value other than undefined or false, and returns that value. A probe that throws counts as "not yet".
 * @throws Error that names `what` and the last answer or error of the probe
 */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: WaitOptions = {},
): Promise<T> {
  const { deadlineMs = HANG_MS, everyMs = 25 } = options
  const end = performance.now() + deadlineMs
  let last: unknown
  for (;;) {
    try {
      const answer = await probe()
      if (answer !== undefined && answer !== false) return answer
      last = answer
    } catch (error) {
      last = error
    }
    if (performance.now() > end)
      throw new Error(`gave up waiting for ${what} after ${deadlineMs} ms; last: ${describe(last)}`, { cause: last })
    await sleep(everyMs)
  }
}

/**
 * Asserts by polling: the assertions of `check` must all hold at last. Failures print as those of `expect` do.
 * @throws what `check` threw last, once the deadline is over
 */
export async function eventually(check: () => Promise<void> | void, options: WaitOptions = {}): Promise<void> {
  const { deadlineMs = HANG_MS, everyMs = 25 } = options
  const end = performance.now() + deadlineMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > end) throw error
    }
    await sleep(everyMs)
  }
}

function describe(value: unknown): string {
  if (value instanceof Error) return value.message
  return JSON.stringify(value) ?? 'nothing'
}
