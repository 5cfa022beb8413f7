import type { IncomingMessage } from 'node:http'
import type { Caller } from '../auth/caller.ts'
import { type GatewayError, orThrow } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'

/** Authenticates a request: the Caller, or rows 1 to 4 and 24. It never waits. */
export type Authenticate = (request: IncomingMessage) => Caller | GatewayError

/** Authenticates a request and notes the key id on its exchange. @throws GatewayError for a request without a valid key */
export function identify(exchange: Exchange, authenticate: Authenticate): Caller {
  const caller = orThrow(authenticate(exchange.request))
  exchange.keyID = caller.keyID
  return caller
}
