import type { Exchange } from './exchange.ts'

/** Limits for clients that keep uploading after they were answered. */
export interface LingerLimits {
  /** Time for which their bytes are discarded before the socket is destroyed, ms. */
  readonly lingerMs: number
  /** Maximum number of such sockets. Further ones are destroyed at once. */
  readonly maxSockets: number
}

/** Limits of production: 2 s without a byte bound, 256 sockets. */
export const LINGER_LIMITS: LingerLimits = { lingerMs: 2_000, maxSockets: 256 }

/**
 * Lets clients read a refusal while they still send their body. TCP resets a socket that is closed with unread bytes; the client may then
 * lose the answer, and every SDK retries after a reset.
 */
export class Lingering {
  readonly #limits: LingerLimits
  #sockets = 0

  constructor(limits: LingerLimits = LINGER_LIMITS) {
    this.#limits = limits
  }

  /**
   * Discards the rest of the body and destroys the socket after the time limit.
   * @param whenRead runs if the body ends in time
   * @returns false when too many sockets linger; the socket is then unchanged
   */
  discard({ request }: Exchange, whenRead?: () => void): boolean {
    if (this.#sockets >= this.#limits.maxSockets) return false
    this.#sockets++
    const timer = setTimeout(() => request.socket.destroy(), this.#limits.lingerMs)
    const done = (): void => {
      clearTimeout(timer)
      this.#sockets--
      request.off('end', ended)
      request.socket.off('close', done)
    }
    const ended = (): void => {
      done()
      whenRead?.()
    }
    request.on('end', ended)
    request.socket.on('close', done) // the response closes as soon as the answer is sent, so its `close` is useless here
    request.resume()
    return true
  }
}
