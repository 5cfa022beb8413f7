import type { IncomingMessage } from 'node:http'
import { type GatewayError, orThrow } from '../errors.ts'
import { type Exchange, requestIdHeaders } from '../http/exchange.ts'
import type { Caller } from '../auth/key-table.ts'

/**
 * Answers one request.
 * @param path without query
 * @returns a refusal that must cost little; the app answers it as if it were thrown
 * @throws GatewayError for any other refusal
 */
export type RouteHandler = (exchange: Exchange, path: string) => Refusal | Promise<Refusal>
type Refusal = GatewayError | void

/** Methods of a route, as the header `Allow` lists them. Express answers HEAD with the handler of GET. */
export type RouteMethods = 'POST' | 'GET, HEAD'

/** Authenticates a request: the Caller, or rows 1 to 4 and 24. It never waits. */
export type Authenticate = (request: IncomingMessage) => Caller | GatewayError

/** Authenticates a request and notes the key id on its exchange. @throws GatewayError for a request without a valid key */
export function identify(exchange: Exchange, authenticate: Authenticate): Caller {
  const caller = orThrow(authenticate(exchange.request))
  exchange.keyID = caller.keyID
  return caller
}

/** Answers 200. */
export function send({ response, requestId }: Exchange, body: Buffer, type = 'application/json'): void {
  const headers = requestIdHeaders(requestId)
  headers.push('content-type', type, 'content-length', String(body.length))
  response.writeHead(200, headers)
  response.end(body)
}
