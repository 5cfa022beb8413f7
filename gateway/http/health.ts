/** Health and metrics: on a port of their own in a cluster, on the gateway's port in standalone. */
import express, { type Express, type NextFunction, type Request, type Response, type Router } from 'express'

export interface HealthDeps {
  /** Whether the tables are loaded and no shutdown has begun. Neither Redis nor load matters: a pod with loaded tables serves or says when to ask again. */
  isReady(): boolean
  readonly metrics: { readonly contentType: string; render(): Promise<string> }
}

export function healthRoutes(deps: HealthDeps): Router {
  const router = express.Router({ caseSensitive: true, strict: true })
  router.get('/healthz', (_, response) => sendText(response, 200, 'ok\n'))
  router.get('/readyz', (_, response) => {
    if (deps.isReady()) sendText(response, 200, 'ready\n')
    else sendText(response, 503, 'not ready: no key table yet, or shutting down\n')
  })
  router.get('/metrics', async (_, response) => sendText(response, 200, await deps.metrics.render(), deps.metrics.contentType))
  router.use((_: unknown, _request: Request, response: Response, _next: NextFunction) => sendText(response, 500, 'internal error\n'))
  return router
}

export function createHealthApp(deps: HealthDeps): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.use(healthRoutes(deps))
  app.use((_, response: Response) => sendText(response, 404, 'not found\n'))
  return app
}

function sendText(response: Response, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store' })
  response.end(text)
}
