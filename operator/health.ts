/** `/livez`, `/readyz` and `/metrics` of the operator, on one port. */
import { createServer, type Server } from 'node:http'

export interface HealthDeps {
  /** False only for an error that a restart fixes: a dead informer. */
  readonly isLive: () => boolean
  /** Why this process is not ready, as text; undefined if it is ready. A standby is ready: otherwise a rollout would wait for it for ever. */
  readonly notReadyReason: () => string | undefined
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>
}

export function createHealthServer(deps: HealthDeps): Server {
  return createServer((request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
    }
    const answerReady = (reason: string | undefined): void =>
      reason === undefined ? answer(200, 'ready\n') : answer(503, `not ready: ${reason}\n`)
    switch (request.url?.split('?')[0]) {
      case '/livez':
        return deps.isLive() ? answer(200, 'ok\n') : answer(503, 'a watch has died; restart\n')
      case '/readyz':
        return answerReady(deps.notReadyReason())
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
