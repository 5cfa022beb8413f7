/** Counts the requests whose answers are not complete, and ends them at a shutdown. */
import { type Clock, sleep } from '#platform/clock.ts'
import { IntrusiveSet } from '#platform/intrusive-set.ts'
import type { Exchange } from './exchange.ts'

/** Time for the last frames after the deadline, ms. A client that does not read does not delay the shutdown further. */
const FLUSH_MS = 1_000

export class ActiveExchanges {
  readonly #exchanges = new IntrusiveSet<Exchange>()
  /** Running model calls of known keys. */
  calls = 0
  /** Number of such calls since the start of the process. */
  callsTaken = 0
  /** Aborted when no exchange is left. */
  #untilIdle = new AbortController()

  get size(): number {
    return this.#exchanges.size
  }

  begin(exchange: Exchange): void {
    this.#exchanges.add(exchange)
  }

  /** Counts a call of a known key. A model may be silent for minutes, so the socket has no time-out of its own from now on. */
  admit(exchange: Exchange): void {
    exchange.isCall = true
    exchange.request.socket.setTimeout(0)
    this.calls += 1
    this.callsTaken += 1
  }

  end(exchange: Exchange): void {
    this.#exchanges.delete(exchange)
    exchange.running?.clientClosed()
    exchange.bodyHold?.release()
    // a connection refers to its last request until the next one arrives; the request must not keep the call in memory
    exchange.bodyHold = undefined
    exchange.running = undefined
    if (exchange.isCall) this.calls -= 1
    if (this.size === 0) this.#untilIdle.abort()
  }

  /** Waits for the requests to end, then interrupts the rest: streams end with an error frame. */
  async drain(graceMs: number, clock: Clock): Promise<void> {
    await this.#idle(graceMs, clock)
    this.#exchanges.forEach((exchange) => {
      exchange.isInterrupted = true
      exchange.running?.interrupt()
    })
    await this.#idle(FLUSH_MS, clock)
  }

  async #idle(waitMs: number, clock: Clock): Promise<void> {
    if (this.size === 0) return
    this.#untilIdle = new AbortController()
    await sleep(clock, waitMs, this.#untilIdle.signal)
  }
}
