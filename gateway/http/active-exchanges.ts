/** The requests whose answers are not wholly sent: the one count of them, and their end at a shutdown. */
import type { Clock } from '../process/clock.ts'
import { IntrusiveSet } from '../process/intrusive-set.ts'
import type { Exchange } from './exchange.ts'

/** Time for the last frames to leave this process after the deadline, ms; a client that does not read must not hold the shutdown. */
const FLUSH_MS = 1_000

/** Made once per process. */
export class ActiveExchanges {
  readonly #exchanges = new IntrusiveSet<Exchange>()
  #calls = 0
  #callsTaken = 0
  #whenIdle: (() => void) | undefined

  /** Requests under way. */
  get size(): number {
    return this.#exchanges.size
  }

  /** Those of them that are model calls of known keys. */
  get calls(): number {
    return this.#calls
  }

  /** Model calls of known keys since the start of the process. */
  get callsTaken(): number {
    return this.#callsTaken
  }

  begin(exchange: Exchange): void {
    this.#exchanges.add(exchange)
  }

  /** The caller is known, and the call is taken. A model may be silent for minutes: the socket has no time-out of its own from here on. */
  admit(exchange: Exchange): void {
    exchange.isCall = true
    exchange.request.socket.setTimeout(0)
    this.#calls += 1
    this.#callsTaken += 1
  }

  end(exchange: Exchange): void {
    this.#exchanges.delete(exchange)
    exchange.bodyHold?.release()
    // a connection keeps its last request until the next one arrives; that request must not keep the whole call in memory
    exchange.bodyHold = undefined
    exchange.running = undefined
    if (exchange.isCall) this.#calls -= 1
    if (this.size === 0) this.#whenIdle?.()
  }

  /**
   * Lets the requests end by themselves for `graceMs`, then interrupts those that are left: streams end with an error frame.
   * New ones must not come any more; the app refuses them.
   */
  async drain(graceMs: number, clock: Clock): Promise<void> {
    await this.#idle(graceMs, clock)
    this.#exchanges.forEach((exchange) => exchange.running?.interrupt())
    await this.#idle(FLUSH_MS, clock)
  }

  /** Waits until nothing is left, at most so long. */
  async #idle(waitMs: number, clock: Clock): Promise<void> {
    if (this.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#whenIdle = resolve
    const cancel = clock.after(waitMs, resolve)
    await promise
    cancel()
  }
}
