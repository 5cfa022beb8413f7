/** `/livez`, `/readyz` and `/metrics` of the dashboard, on a port of their own. */
import { createServer, type Server } from 'node:http'

export interface HealthDeps {
  /** Whether a watch has died, which only a restart repairs. */
  readonly isDead: () => boolean
  /** Rejects while the database does not answer. */
  readonly ping: () => Promise<void>
  readonly registry: { readonly contentType: string; metrics(): Promise<string> }
}

interface Answer {
  readonly status: number
  readonly text: string
  readonly type?: string
}

export function createHealthServer(deps: HealthDeps): Server {
  return createServer((request, response) => {
    const answer = answerOf(deps, request.url?.split('?')[0] ?? '').catch((): Answer => ({
      status: 500,
      text: 'the answer could not be made\n',
    }))
    void answer.then(({ status, text, type = 'text/plain; charset=utf-8' }) => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
    })
  })
}

async function answerOf({ isDead, ping, registry }: HealthDeps, path: string): Promise<Answer> {
  switch (path) {
    case '/livez':
      return isDead() ? { status: 503, text: 'a watch has died; restart\n' } : { status: 200, text: 'ok\n' }
    case '/readyz':
      return await ping().then(
        () => ({ status: 200, text: 'ready\n' }),
        () => ({ status: 503, text: 'not ready: the database does not answer\n' }),
      )
    case '/metrics':
      return { status: 200, text: await registry.metrics(), type: registry.contentType }
    default:
      return { status: 404, text: 'not found\n' }
  }
}
