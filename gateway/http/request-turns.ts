/** A turn of the event loop that takes longer than this, ms, delays all requests. */
const LONG_TURN_MS = 1
/** Bounds on the number of requests that one key may start in a turn. */
const MIN_PER_TURN = 1
const MAX_PER_TURN = 64

/** The turns of one key. */
export class TurnTaker {
  turn = -1
  begun = 0
  readonly waiting: (() => void)[] = []
}

/**
 * Spreads the requests of one key over turns of the event loop. A key with hundreds of connections would fill a whole turn, and all others
 * would wait for its requests. The number of requests per turn depends on the length of turns: it is halved after a long turn and grows by
 * one after a short one. So a key that is alone on a fast pod hardly ever waits.
 */
export class RequestTurns {
  readonly #now: () => number
  #turn = 0
  #perTurn = MAX_PER_TURN
  /** Time of the first request in this turn, ms. From then on the turn has no idle time. */
  #beganAt = 0
  #isScheduled = false
  #waiting: TurnTaker[] = []

  /** @param now monotonic time, ms */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Asks for a turn. @returns undefined if the request may start now; otherwise a promise that resolves in its turn */
  take(key: TurnTaker): Promise<void> | undefined {
    if (!this.#isScheduled) this.#schedule()
    if (key.turn !== this.#turn) this.#renew(key)
    if (key.begun < this.#perTurn) {
      key.begun += 1
      return undefined
    }
    if (key.waiting.length === 0) this.#waiting.push(key)
    return new Promise((resolve) => key.waiting.push(resolve))
  }

  #renew(key: TurnTaker): void {
    key.turn = this.#turn
    key.begun = 0
  }

  #schedule(): void {
    this.#isScheduled = true
    this.#beganAt = this.#now()
    setImmediate(() => this.#next())
  }

  #next(): void {
    const isLong = this.#now() - this.#beganAt > LONG_TURN_MS
    this.#perTurn = isLong ? Math.max(MIN_PER_TURN, this.#perTurn >> 1) : Math.min(MAX_PER_TURN, this.#perTurn + 1)
    this.#isScheduled = false
    this.#turn += 1
    if (this.#waiting.length > 0) this.#beginWaiting()
  }

  #beginWaiting(): void {
    const keys = this.#waiting
    this.#waiting = []
    this.#schedule()
    for (const key of keys) {
      this.#renew(key)
      const next = key.waiting.splice(0, this.#perTurn)
      for (const begin of next) begin()
      key.begun = next.length
      if (key.waiting.length > 0) this.#waiting.push(key)
    }
  }
}
