import type { IncomingMessage } from 'node:http'
import type { Caller } from '../auth/caller.ts'
import { type GatewayError, orThrow } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'

/** Who is asking, or rows 1 to 4 and 24. Never waits. */
export type Authenticate = (request: IncomingMessage) => Caller | GatewayError

/** Notes on the exchange who is asking. @throws GatewayError for nobody */
export function identify(exchange: Exchange, authenticate: Authenticate): Caller {
  const caller = orThrow(authenticate(exchange.request))
  exchange.keyID = caller.keyID
  return caller
}
