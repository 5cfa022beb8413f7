/**
 * Most bytes of one stream within a tick. Models write a hundredth of that in a second; a server that writes as fast as it can would take the
 * event loop from all other calls.
 */
const MAX_BYTES_PER_TICK = 2 ** 20

/** How far a stream may run ahead of the clock. */
export class StreamPace {
  #bytes = 0

  /** The backend has to wait for the next tick. */
  get isAhead(): boolean {
    return this.#bytes >= MAX_BYTES_PER_TICK
  }

  take(bytes: number): void {
    this.#bytes += bytes
  }

  nextTick(): void {
    this.#bytes = 0
  }
}
