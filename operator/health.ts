/** `/livez`, `/readyz` and `/metrics` of the operator, on one port. */
import { createServer, type Server } from 'node:http'

/** What the probes ask. */
export interface HealthDeps {
  /** False only for what a restart alone cures: a dead informer. */
  readonly isLive: () => boolean
  /** True on standbys too, else a rollout would wait for them for ever. */
  readonly isReady: () => boolean
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>
}

/** The server; it does not listen. */
export function createHealthServer(deps: HealthDeps): Server {
  return createServer((request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
    }
    switch (request.url?.split('?')[0]) {
      case '/livez':
        return deps.isLive() ? answer(200, 'ok\n') : answer(503, 'a watch has died; restart\n')
      case '/readyz':
        return deps.isReady() ? answer(200, 'ready\n') : answer(503, 'not ready: the Kubernetes API or Redis has not answered yet\n')
      case '/metrics':
        deps.metrics().then(
          ({ contentType, text }) => answer(200, text, contentType),
          () => answer(500, 'the metrics could not be rendered\n'),
        )
        return
      default:
        return answer(404, 'not found\n')
    }
  })
}
