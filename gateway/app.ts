/** The app of the gateway: opens an exchange for each request and lets its route answer it. `http/server.ts` listens. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import { constantError, GatewayError, sharedError } from './errors.ts'
import type { ActiveExchanges } from './http/active-exchanges.ts'
import type { Cors } from './http/cors.ts'
import { type Answer, Exchange, formatOfPath } from './http/exchange.ts'
import { healthRoutes, type HealthDeps } from './http/health.ts'
import type { ErrorSender } from './http/send-error.ts'
import type { GatewayMetrics } from './metrics.ts'
import { unknownPaths } from './routes/near-route.ts'
import { pathPattern, ROUTES, type Route } from './routes/route-table.ts'
import type { RouteDeps, RouteHandler } from './routes/route.ts'

export interface AppDeps extends RouteDeps {
  readonly errors: ErrorSender
  readonly active: ActiveExchanges
  /** False while the tables are not loaded, and while a shutdown waits for running answers. Requests then get row 24. */
  isServing(): boolean
  /** True once the pod is about to stop: each answer then closes its connection. */
  isLeaving(): boolean
  readonly metrics: Pick<GatewayMetrics, 'finished'>
  readonly accessLog: (exchange: Exchange) => void
  /** Absent unless pages of other origins may call the gateway. */
  readonly cors?: Cors | undefined
  /** Standalone only, where health and metrics are on the API's port. In a cluster they have a port of their own. */
  readonly health?: HealthDeps
}

/**
 * Makes the app. Paths match exactly: case-sensitive, no trailing slash, any query. A POST to the exact target of a route goes to its handler
 * directly; all other requests go through Express, which would cost a model call 6 µs.
 */
export function createApp(deps: AppDeps, routes: readonly Route[] = ROUTES): RequestListener {
  const open = opener(deps)
  const posts = new Map<string, ExchangeHandler>()
  const others = express()
  others.disable('x-powered-by').disable('etag').disable('query parser').enable('case sensitive routing').enable('strict routing')
  if (deps.health) others.use(healthRoutes(deps.health))
  others.use((request, response, next) => {
    const exchange = open(request, response, request.path)
    if (exchange && !deps.cors?.answersPreflight(exchange)) next()
  })
  for (const route of routes) serve(others, posts, route, deps)
  const unknownPath = unknownPaths(routes)
  others.use(({ method, path }: Request, response: Response) => deps.errors.send(exchangeOf(response), unknownPath(method, path)))
  others.use((cause: unknown, _: Request, response: Response, _next: NextFunction) => fail(exchangeOf(response), cause, deps))
  return (request, response) => {
    const { method, url = '' } = request
    const handle = method === 'POST' ? posts.get(url) : undefined
    if (handle === undefined) return others(request, response)
    const exchange = open(request, response, url)
    if (exchange) void handle(exchange, url)
  }
}

type ExchangeHandler = (exchange: Exchange, path: string) => Promise<void>

/** Registers a route: its methods get its handler, all others get row 6. */
function serve(others: Express, posts: Map<string, ExchangeHandler>, route: Route, deps: AppDeps): void {
  const paths = route.paths.map(pathPattern)
  const handle = answer(route, route.handler(deps), deps)
  const handler = ({ path }: Request, response: Response): void => void handle(exchangeOf(response), path)
  if (route.methods === 'POST') {
    for (const path of route.paths) posts.set(path, handle)
    others.post(paths, handler) // with a query
  } else others.get(paths, handler)
  const wrongMethod = constantError('wrongMethod', { allow: route.methods })
  others.all(paths, (_: Request, response: Response) => deps.errors.send(exchangeOf(response), wrongMethod))
}

/** Runs a handler and answers its errors. No other code catches errors of handlers. */
function answer({ label }: Route, handler: RouteHandler, deps: AppDeps): ExchangeHandler {
  return async (exchange, path) => {
    exchange.route = label
    try {
      const refusal = await handler(exchange, path)
      if (refusal) fail(exchange, refusal, deps)
    } catch (cause) {
      fail(exchange, cause, deps)
    }
  }
}

/** Never throws: a bug in an error answer ends its own connection, not the process. */
function fail(exchange: Exchange, cause: unknown, { errors }: AppDeps): void {
  try {
    errors.send(exchange, cause instanceof GatewayError ? cause : new GatewayError('internalError', {}, { cause }))
  } catch {
    exchange.response.destroy()
  }
}

/** @returns the exchange of a request, or undefined if it is already answered */
function opener(deps: AppDeps): (request: IncomingMessage, response: ServerResponse, path: string) => Exchange | undefined {
  const { active, metrics, accessLog, errors, cors } = deps
  function end(this: ServerResponse): void {
    const exchange = exchangeOf(this)
    active.end(exchange)
    metrics.finished(exchange)
    accessLog(exchange)
  }
  return (request, response, path) => {
    const exchange = new Exchange(request, response, formatOfPath(path))
    const made = response as Answer // the server of the gateway makes only such answers
    made.exchange = exchange
    if (cors) exchange.cors = cors.headersFor(request)
    active.begin(exchange)
    response.on('close', end)
    if (deps.isLeaving()) response.shouldKeepAlive = false
    if (deps.isServing()) return exchange
    errors.send(exchange, sharedError('notReady'))
    return undefined
  }
}

function exchangeOf(response: ServerResponse): Exchange {
  const { exchange } = response as Answer
  if (exchange === undefined) throw new TypeError('an answer without an exchange')
  return exchange
}
