/**
 * Answers under way on each connection. Node parses all requests of a chunk, even of a connection that it has paused, and their answers wait
 * behind the first one. When the connection goes, Node tells the first answer alone.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** No SDK pipelines. A client with more answers under way on one connection is cut off: it could fill the process without reading. */
const MAX_UNDER_WAY = 4

/** Bounds the answers of each connection, and ends those that wait when it goes. One per server. */
export class ConnectionAnswers {
  readonly #underWay = new WeakMap<Socket, Set<ServerResponse>>()

  /**
   * Takes a request; its answer will have a `close` event.
   * @returns false when the connection is over, or has too many answers under way and is destroyed now; nothing may be answered then
   */
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
    socket.on('close', () => queueMicrotask(() => endWaiting(underWay))) // once Node has told the first one
    return underWay
  }
}

/** Answers that wait for their turn have no socket yet, so nothing but this tells them that it has gone. */
function endWaiting(underWay: ReadonlySet<ServerResponse>): void {
  for (const response of [...underWay]) response.destroy().emit('close')
}
