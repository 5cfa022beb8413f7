import type { GatewayError } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'

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
