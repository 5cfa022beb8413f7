/** Settles again what happened at the provider in the last two days, so that a lost event heals. */
import { type Clock, sleep } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import type { PaymentProvider } from './provider.ts'
import type { Settlement } from './settlement.ts'

export interface SweepDeps {
  readonly provider: PaymentProvider
  readonly settlement: Settlement
  readonly clock: Clock
  readonly log: Log
  /** Pause between two sweeps, ms. */
  readonly everyMs?: number | undefined
  /** After each sweep. */
  readonly onSwept: (isWhole: boolean) => void
}

/** Pause between two sweeps of a program in a cluster, ms. */
const EVERY_MS = 600_000
/** How far back a sweep looks, s. */
const BACK = 48 * 3_600

export class Sweep {
  readonly #deps: SweepDeps
  /** Events that were settled here, with their time: not asked about again. */
  readonly #settled = new Map<string, number>()

  constructor(deps: SweepDeps) {
    this.#deps = deps
  }

  async runUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.once()
      await sleep(this.#deps.clock, this.#deps.everyMs ?? EVERY_MS, signal)
    }
  }

  /** One failure does not end it: the other payments are settled. */
  async once(): Promise<void> {
    const { provider, clock, log, onSwept } = this.#deps
    const since = Math.floor(clock.now() / 1_000) - BACK
    for (const [id, created] of this.#settled) if (created < since) this.#settled.delete(id)
    let failures = 0
    try {
      for await (const event of provider.events(since)) if (!this.#settled.has(event.id) && !(await this.#try(event))) failures += 1
    } catch (error) {
      failures += 1
      log.warn({ error: messageOf(error) }, 'the payments of the last two days could not be listed; they are tried again')
    }
    onSwept(failures === 0)
  }

  async #try(event: Parameters<Settlement['ofEvent']>[0]): Promise<boolean> {
    try {
      await this.#deps.settlement.ofEvent(event)
      this.#settled.set(event.id, event.created)
      return true
    } catch (error) {
      this.#deps.log.warn({ event: event.id, error: messageOf(error) }, 'a payment could not be settled; it is tried again')
      return false
    }
  }
}
