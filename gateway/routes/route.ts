import type { Exchange } from '../http/exchange.ts'

/**
 * Answers one request.
 * @param path without query
 * @throws GatewayError for a refusal, which the app answers
 */
export type RouteHandler = (exchange: Exchange, path: string) => void | Promise<void>

/** Methods of a route, as `Allow` names them. Express answers HEAD with the handler of GET. */
export type RouteMethods = 'POST' | 'GET, HEAD'
