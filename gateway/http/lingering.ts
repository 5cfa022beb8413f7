import type { Exchange } from './exchange.ts'

/** Bounds of what is done for clients that still send while they have their answer. */
export interface LingerLimits {
  /** How long their bytes are thrown away before the socket is destroyed. */
  readonly lingerMs: number
  /** Sockets that may do so at once; further ones are destroyed at once. */
  readonly maxSockets: number
}

/** 2 s without a byte bound, 256 sockets. */
export const LINGER_LIMITS: LingerLimits = { lingerMs: 2_000, maxSockets: 256 }

/**
 * Lets clients that are still sending their body read an early refusal. A socket closed with unread bytes is reset by TCP, the client
 * may lose the answer, and every SDK retries a reset.
 */
export class Lingering {
  readonly #limits: LingerLimits
  #sockets = 0

  constructor(limits: LingerLimits = LINGER_LIMITS) {
    this.#limits = limits
  }

  /**
   * Discards the rest of the body; the socket goes after the time limit.
   * @param whenRead runs if the body ends in time
   * @returns false when too many sockets linger; then nothing was done
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
    request.socket.on('close', done) // not the response's: that closes as soon as the answer is out
    request.resume()
    return true
  }
}
