/**
 * The reference for comparisons: node:http in front, undici.dispatch behind, and no policy. The difference is the cost of the gateway's promises.
 *
 *   node bare-proxy.ts IP PORT UPSTREAM_ORIGIN
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool, type Dispatcher } from 'undici'

const [ip = '127.0.0.1', port = '0', origin = ''] = process.argv.slice(2)
const pool = new Pool(origin, { pipelining: 1, allowH2: false, keepAliveTimeout: 4_000, keepAliveMaxTimeout: 4_000 })

/** Forwards an answer as it arrives, no faster than the client reads. */
class Relay implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  #controller: Dispatcher.DispatchController | undefined = undefined

  constructor(response: ServerResponse) {
    this.#response = response
    response.once('close', () => {
      if (!response.writableFinished) this.#controller?.abort(new Error('the client has left'))
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingMessage['headers']): void {
    const flat: string[] = []
    for (const name of ['content-type', 'content-length', 'cache-control'] as const) {
      const value = headers[name]
      if (value !== undefined) flat.push(name, value)
    }
    this.#response.writeHead(status, flat)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => controller.resume())
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(): void {
    this.#response.destroy()
  }
}

const server = createServer({ keepAliveTimeout: 75_000, noDelay: true }, (request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 ? (chunks[0] ?? null) : Buffer.concat(chunks)
    const headers = ['content-type', request.headers['content-type'] ?? 'application/json']
    const timeouts = { headersTimeout: 0, bodyTimeout: 0 } // no timeouts, as in other proxies for models: a first token may take minutes
    pool.dispatch({ path: request.url ?? '/', method: 'POST', headers, body, ...timeouts }, new Relay(response))
  })
})
server.listen(Number(port), ip)
process.once('SIGTERM', () => process.exit(0)) // a regular end, so that Node writes its profile if its flags ask for one
