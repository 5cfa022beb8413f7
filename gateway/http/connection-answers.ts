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
  readonly #underWay = new WeakMap<Socket, Set<ServerResponse>>()

  /** @returns false when the connection is over, or has too many answers under way and is destroyed now; nothing may be answered then */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (socket.destroyed) return false // the rest of the chunk that held one request too many
    const underWay = this.#of(socket)
    if (underWay.size >= MAX_UNDER_WAY) {
      socket.destroy()
      return false
    }
    underWay.add(response)
    response.on('close', () => underWay.delete(response))
    return true
  }

  #of(socket: Socket): Set<ServerResponse> {
    const known = this.#underWay.get(socket)
    if (known) return known
    const underWay = new Set<ServerResponse>()
    this.#underWay.set(socket, underWay)
    return underWay
  }
}
