/** The Express app of the gateway: opens an exchange for each request and lets the route answer it. `http/server.ts` listens. */
import express, { type Express, type NextFunction, type Request } from 'express'
import { constantError, GatewayError, sharedError } from './errors.ts'
import type { ActiveExchanges } from './http/active-exchanges.ts'
import { Exchange, formatOfPath, type Answer } from './http/exchange.ts'
import { healthRoutes, type HealthDeps } from './http/health.ts'
import type { ErrorSender } from './http/send-error.ts'
import type { GatewayMetrics } from './metrics.ts'
import { unknownPaths } from './routes/near-route.ts'
import { pathPattern, ROUTES, type Route, type RouteDeps } from './routes/route-table.ts'
import type { RouteHandler } from './routes/route.ts'

export interface AppDeps extends RouteDeps {
  readonly errors: ErrorSender
  readonly active: ActiveExchanges
  /** False while the tables are not loaded, and while a shutdown waits for running answers. Requests then get row 24. */
  isServing(): boolean
  /** True once the pod is about to stop: each answer then closes its connection. */
  isLeaving(): boolean
  readonly metrics: Pick<GatewayMetrics, 'finished'>
  readonly accessLog: (exchange: Exchange) => void
  /** Standalone only, where health and metrics are on the API's port. In a cluster they have a port of their own. */
  readonly health?: HealthDeps
}

/** Makes the app. Paths match exactly: case-sensitive, no trailing slash, any query. */
export function createApp(deps: AppDeps, routes: readonly Route[] = ROUTES): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').disable('query parser').enable('case sensitive routing').enable('strict routing')
  if (deps.health) app.use(healthRoutes(deps.health))
  app.use(begin(deps))
  for (const route of routes) serve(app, route, deps)
  const unknownPath = unknownPaths(routes)
  app.use(({ method, path }: Request, response: Answer) => deps.errors.send(response.locals.exchange, unknownPath(method, path)))
  app.use((cause: unknown, _: Request, response: Answer, _next: NextFunction) => fail(response.locals.exchange, cause, deps))
  return app
}

/** Registers a route: its methods get its handler, all others get row 6. */
function serve(app: Express, route: Route, deps: AppDeps): void {
  const paths = route.paths.map(pathPattern)
  const handler = answer(route, route.handler(deps), deps)
  if (route.methods === 'POST') app.post(paths, handler)
  else app.get(paths, handler)
  const wrongMethod = constantError('wrongMethod', { allow: route.methods })
  app.all(paths, (_: Request, response: Answer) => deps.errors.send(response.locals.exchange, wrongMethod))
}

/** Runs a handler and answers its errors. No other code catches errors of handlers. */
function answer({ label }: Route, handler: RouteHandler, deps: AppDeps): (request: Request, response: Answer) => Promise<void> {
  return async ({ path }, response) => {
    const { exchange } = response.locals
    exchange.route = label
    try {
      const refusal = await handler(exchange, path)
      if (refusal) fail(exchange, refusal, deps)
    } catch (cause) {
      fail(exchange, cause, deps)
    }
  }
}

function fail(exchange: Exchange, cause: unknown, { errors }: AppDeps): void {
  errors.send(exchange, cause instanceof GatewayError ? cause : new GatewayError('internalError', {}, { cause }))
}

function begin(deps: AppDeps): (request: Request, response: Answer, next: NextFunction) => void {
  const { active, metrics, accessLog, errors } = deps
  function end(this: Answer): void {
    const { exchange } = this.locals
    active.end(exchange)
    metrics.finished(exchange)
    accessLog(exchange)
  }
  return (request, response, next) => {
    const exchange = new Exchange(request, response, formatOfPath(request.path))
    response.locals.exchange = exchange
    active.begin(exchange)
    response.on('close', end)
    if (deps.isLeaving()) response.shouldKeepAlive = false
    if (deps.isServing()) next()
    else errors.send(exchange, sharedError('notReady'))
  }
}
