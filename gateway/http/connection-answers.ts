/**
 * Answers under way on each connection. Node parses all requests of a chunk, even of a connection that it has paused, and their answers wait
 * behind the first one.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** No SDK pipelines. A client with more answers under way on one connection is cut off: it could fill the process without reading. */
const MAX_UNDER_WAY = 4
/** Answer of `onIncoming` for an upgraded connection: what follows is not HTTP. */
const STOP_PARSING = 2

/** Node's parser of a connection; the field is not documented. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming?: (() => number) | null } | null
}

/** Bounds the answers of each connection. One per server. */
export class ConnectionAnswers {
  readonly #underWay = new WeakMap<Socket, number>()

  /** @returns false when the connection is over, or has too many answers under way and is cut off now; nothing may be answered then */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (socket.destroyed) return false
    const underWay = this.#of(socket)
    if (underWay >= MAX_UNDER_WAY) {
      cutOff(socket)
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

/** A chunk holds more than a thousand small requests. Node would make objects of all of them, for a caller without a key. */
function cutOff(socket: ParsedSocket): void {
  socket.destroy()
  if (socket.parser) socket.parser.onIncoming = () => STOP_PARSING
}
