/**
 * Bounds the answers in progress on each connection. Node parses all requests of a chunk, even on a paused connection, and their answers
 * wait behind the first one.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * No SDK pipelines requests. A client with more answers in progress on one connection is disconnected: it could fill the process without
 * reading.
 */
const MAX_UNDER_WAY = 4
/** Return value of `onIncoming` for an upgraded connection: the parser stops, since the next bytes are not HTTP. */
const STOP_PARSING = 2

/** Answers in progress. A property costs less than a WeakMap, whose entries each young collection visits. */
const UNDER_WAY = Symbol('answers under way')

/** A connection with the property of this file and Node's undocumented field `parser`. */
interface Connection extends Socket {
  [UNDER_WAY]?: number
  parser?: { onIncoming?: (() => number) | null } | null
}

/**
 * Counts an answer until it closes.
 * @returns false when the connection is closed, or is closed now because it has too many answers in progress. The caller then answers
 * nothing
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

/**
 * Closes a connection. One chunk can contain more than a thousand small requests, and Node would make objects of all of them for a client
 * without a key.
 */
function cutOff(connection: Connection): void {
  connection.destroy()
  if (connection.parser) connection.parser.onIncoming = () => STOP_PARSING
}
