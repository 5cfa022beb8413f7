/** Counts the requests whose answers are not complete, and ends them at a shutdown. */
import { type Clock, sleep } from '#platform/clock.ts'
import { IntrusiveSet } from '#platform/intrusive-set.ts'
import { constantError, type GatewayError } from '../errors.ts'
import type { Exchange } from './exchange.ts'
import { MAX_CALLS } from './load-guard.ts'
import { type ShareOwner, Shares, type Whose, whoseTenant } from './shares.ts'

/** Time for the last frames after the deadline, ms. A client that does not read does not delay the shutdown further. */
const FLUSH_MS = 1_000

/** Parts of the calls of the process: a tenant may have one in four, a key one in eight. */
const PARTS_PER_TENANT = 4
const PARTS_PER_KEY = 8

const FULL: Readonly<Record<Whose, GatewayError>> = {
  key: constantError('tooManyCalls', { whose: 'key' }),
  account: constantError('tooManyCalls', { whose: 'account' }),
  namespace: constantError('tooManyCalls', { whose: 'namespace' }),
}

export class ActiveExchanges {
  readonly #perTenant: number
  readonly #perKey: number
  readonly #tenants = new Shares()
  readonly #keys = new Shares()
  readonly #exchanges = new IntrusiveSet<Exchange>()
  /** Running model calls of known keys. */
  calls = 0
  /** Number of such calls since the start of the process. */
  callsTaken = 0
  /** Aborted when no exchange is left. */
  #untilIdle = new AbortController()

  /** @param maxCalls running model calls at which the process is full */
  constructor(maxCalls: number = MAX_CALLS) {
    this.#perTenant = Math.max(1, Math.floor(maxCalls / PARTS_PER_TENANT))
    this.#perKey = Math.max(1, Math.floor(maxCalls / PARTS_PER_KEY))
  }

  get size(): number {
    return this.#exchanges.size
  }

  begin(exchange: Exchange): void {
    this.#exchanges.add(exchange)
  }

  /**
   * Counts a call of a known key. A model may be silent for minutes, so the socket has no time-out of its own from now on.
   * @returns row 25 if the key or its tenant has too many calls, which then does not count
   */
  admit(exchange: Exchange, { tenant, key }: ShareOwner): GatewayError | undefined {
    const [ofTenant, ofKey] = [this.#tenants.of(tenant), this.#keys.of(key)]
    if (ofKey.holders >= this.#perKey) return FULL.key
    if (ofTenant.holders >= this.#perTenant) return FULL[whoseTenant(tenant)]
    ofTenant.holders += 1
    ofKey.holders += 1
    exchange.callOf = { tenant: ofTenant, key: ofKey }
    exchange.request.socket.setTimeout(0)
    this.calls += 1
    this.callsTaken += 1
    return undefined
  }

  end(exchange: Exchange): void {
    this.#exchanges.delete(exchange)
    exchange.running?.clientClosed()
    exchange.bodyHold?.release()
    // a connection refers to its last request until the next one arrives; the request must not keep the call in memory
    exchange.bodyHold = undefined
    exchange.running = undefined
    if (exchange.callOf !== undefined) this.#endCall(exchange.callOf)
    if (this.size === 0) this.#untilIdle.abort()
  }

  #endCall({ tenant, key }: NonNullable<Exchange['callOf']>): void {
    this.calls -= 1
    tenant.holders -= 1
    key.holders -= 1
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
