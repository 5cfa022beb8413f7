/**
 * Answers under way on each connection. Node parses all requests of a chunk, even of a connection that it has paused, and their answers wait
 * behind the first one.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** No SDK pipelines. A client with more answers under way on one connection is cut off: it could fill the process without reading. */
const MAX_UNDER_WAY = 4

/** Bounds the answers of each connection. One per server. */
export class ConnectionAnswers {
  readonly #underWay = new WeakMap<Socket, number>()

  /** @returns false when the connection is over, or has too many answers under way and is destroyed now; nothing may be answered then */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (socket.destroyed) return false // the rest of the chunk that held one request too many
    const underWay = this.#of(socket)
    if (underWay >= MAX_UNDER_WAY) {
      socket.destroy()
      return false
    }
    this.#underWay.set(socket, underWay + 1)
    response.on('close', () => this.#underWay.set(socket, this.#of(socket) - 1))
    return true
  }

  #of(socket: Socket): number {
    return this.#underWay.get(socket) ?? 0
  }
}
