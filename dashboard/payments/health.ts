/** `/livez`, `/readyz` and `/metrics` of the payments program, on a port of their own. It keeps nothing, so it is ready while it runs. */
import { createServer, type Server } from 'node:http'

export function createHealthServer(registry: { readonly contentType: string; metrics(): Promise<string> }): Server {
  return createServer((request, response) => {
    const path = request.url?.split('?')[0]
    const isKnown = path === '/livez' || path === '/readyz' || path === '/metrics'
    const text = path === '/metrics' ? registry.metrics() : Promise.resolve(isKnown ? 'ok\n' : 'not found\n')
    const type = path === '/metrics' ? registry.contentType : 'text/plain; charset=utf-8'
    text.then(
      (body) => response.writeHead(isKnown ? 200 : 404, { 'content-type': type, 'cache-control': 'no-store' }).end(body),
      () => response.writeHead(500).end(),
    )
  })
}
