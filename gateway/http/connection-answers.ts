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

/** Answers under way. A property costs nothing beside a WeakMap, whose entries each young collection visits. */
const UNDER_WAY = Symbol('answers under way')

/** A connection with what this file keeps on it, and Node's parser, whose field is not documented. */
interface Connection extends Socket {
  [UNDER_WAY]?: number
  parser?: { onIncoming?: (() => number) | null } | null
}

/**
 * Counts an answer of its connection until the answer is closed.
 * @returns false when the connection is over, or has too many answers under way and is cut off now; nothing may be answered then
 */
export function takeAnswer(request: IncomingMessage, response: ServerResponse): boolean {
  const connection: Connection = request.socket
  if (connection.destroyed) return false
  const underWay = connection[UNDER_WAY] ?? 0
  if (underWay >= MAX_UNDER_WAY) {
    cutOff(connection)
    return false
  }
  connection[UNDER_WAY] = underWay + 1
  response.on('close', answerClosed)
  return true
}

function answerClosed(this: ServerResponse): void {
  const connection: Connection = this.req.socket
  connection[UNDER_WAY] = (connection[UNDER_WAY] ?? 1) - 1
}

/** A chunk holds more than a thousand small requests. Node would make objects of all of them, for a caller without a key. */
function cutOff(connection: Connection): void {
  connection.destroy()
  if (connection.parser) connection.parser.onIncoming = () => STOP_PARSING
}
