/** A turn of the event loop that takes longer delays everybody, ms. */
const LONG_TURN_MS = 1
/** Bounds of what one key may begin in a turn, requests. */
const LEAST_PER_TURN = 1
const MOST_PER_TURN = 64

/** What is kept of one key; `RequestTurns` alone changes it. */
export interface TurnTaker {
  /** Turn in which the key began a request last. */
  turn: number
  /** Requests that the key has begun in that turn. */
  begun: number
  readonly waiting: (() => void)[]
}

/** State of a key that has begun nothing yet. */
export function turnTaker(): TurnTaker {
  return { turn: -1, begun: 0, waiting: [] }
}

/**
 * Spreads the requests of one key over turns of the event loop. A key with hundreds of connections would fill a whole turn, and everybody else
 * would wait for all of its requests. How many may begin depends on how long the turns are: half as many after a long one, one more after a
 * short one. So a key that is alone on a fast pod hardly ever waits.
 */
export class RequestTurns {
  readonly #now: () => number
  #turn = 0
  #perTurn = MOST_PER_TURN
  /** When the first request of this turn came, ms: a turn has no idle time from there on. */
  #beganAt = 0
  #isScheduled = false
  #waiting: TurnTaker[] = []

  /** @param now monotonic time, ms */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** @returns undefined if the request may begin now; otherwise resolves in the turn in which it may */
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
    this.#perTurn = isLong ? Math.max(LEAST_PER_TURN, this.#perTurn >> 1) : Math.min(MOST_PER_TURN, this.#perTurn + 1)
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
