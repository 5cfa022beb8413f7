/** Routes of the gateway. What a step does is in `routes/`; nothing listens here. */
import express, { type Express, type NextFunction, type Request } from 'express'
import { chatCompletions } from './dialects/chat-completions.ts'
import { messages } from './dialects/messages.ts'
import { GatewayError, sharedError } from './errors.ts'
import { ConnectionAnswers } from './http/connection-answers.ts'
import { dialectOfPath, Exchange, type Answer } from './http/exchange.ts'
import { healthRoutes, type HealthDeps } from './http/health.ts'
import { requestIdHeaders } from './http/request-id.ts'
import type { GatewayMetrics } from './metrics.ts'
import { inference, type InferenceDeps } from './routes/inference.ts'
import { listModels, MODEL_PATH, oneModel, type ModelsDeps } from './routes/models.ts'

/** Everything that the app is made of; `main.ts` and `standalone/` compose it, tests fake it. */
export interface AppDeps extends Omit<InferenceDeps, 'models'>, Pick<ModelsDeps, 'models'> {
  /** False while the table is not loaded and while a shutdown waits for running answers: row 24. */
  isServing(): boolean
  /** Answers end their connections from now on: the pod is about to stop. */
  readonly isLeaving?: () => boolean
  readonly metrics: Pick<GatewayMetrics, 'started' | 'finished'>
  readonly accessLog: (exchange: Exchange) => void
  /** Standalone serves health and metrics on the same port; a cluster has a port for them. */
  readonly health?: HealthDeps
}

/** Makes the app. Paths match exactly: case-sensitive, no trailing slash, any query. */
export function createApp(deps: AppDeps): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').disable('query parser').enable('case sensitive routing').enable('strict routing')
  if (deps.health) app.use(healthRoutes(deps.health))
  app.use(begin(deps))

  app.post('/v1/chat/completions', inference(chatCompletions, deps))
  app.post(['/v1/messages', '/v1/v1/messages'], inference(messages, deps))
  app.get(['/v1/models', '/v1/v1/models'], listModels(deps))
  app.get(MODEL_PATH, oneModel(deps))
  app.get('/', home)

  const { errors } = deps
  const refuse = (error: GatewayError) => (_: Request, response: Answer) => errors.send(response.locals.exchange, error)
  app.all(['/v1/chat/completions', '/v1/messages', '/v1/v1/messages'], refuse(new GatewayError('wrongMethod', { allow: 'POST' })))
  app.all(['/', '/v1/models', '/v1/v1/models', MODEL_PATH], refuse(new GatewayError('wrongMethod', { allow: 'GET, HEAD' })))
  app.use(refuse(sharedError('unknownPath')))
  app.use((cause: unknown, _: Request, response: Answer, _next: NextFunction) => {
    errors.send(response.locals.exchange, new GatewayError('internalError', {}, { cause }))
  })
  return app
}

/** Opens the exchange of each request and closes its books when the connection is done with it. */
function begin(deps: AppDeps): (request: Request, response: Answer, next: NextFunction) => void {
  const { metrics, accessLog, errors } = deps
  const connections = new ConnectionAnswers()
  function end(this: Answer): void {
    metrics.finished(this.locals.exchange)
    accessLog(this.locals.exchange)
  }
  return (request, response, next) => {
    if (!connections.take(request, response)) return
    const exchange = new Exchange(request, response, dialectOfPath(request.path))
    response.locals.exchange = exchange
    response.on('close', end)
    metrics.started()
    if (deps.isLeaving?.() === true) response.shouldKeepAlive = false
    if (deps.isServing()) next()
    else errors.send(exchange, sharedError('notReady'))
  }
}

/** Claude Code looks whether anybody is there. */
function home(_: Request, response: Answer): void {
  const { exchange } = response.locals
  exchange.route = '/'
  response.writeHead(200, requestIdHeaders(exchange.requestId).concat('content-length', '0'))
  response.end()
}
