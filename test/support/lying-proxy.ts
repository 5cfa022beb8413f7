/** Stands between an operator and the API server and leaves an ApiKey out of lists, as an API server with a stale cache may. Reads of one object tell the truth. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { text } from 'node:stream/consumers'
import type { ControlPlane } from './control-plane.ts'
import { certificate, closeAll, forward } from './crash-proxy.ts'
import { listening } from './listening.ts'

const COLLECTION = /\/apikeys(\?|$)/
/** Ends a watch so that the client lists again. */
const EXPIRED = {
  type: 'ERROR',
  object: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Expired', code: 410, message: 'too old' },
}

interface List {
  readonly items: ReadonlyArray<{ readonly metadata: { readonly name: string } }>
}

export class LyingProxy {
  readonly url: string
  /** Number of lists that lacked an object. */
  lies = 0
  readonly #server: Server
  readonly #watches = new Set<ServerResponse>()
  #hidden: string | undefined

  private constructor(server: Server, url: string) {
    this.#server = server
    this.url = url
  }

  static async start(plane: ControlPlane): Promise<LyingProxy> {
    const { key, cert, ca } = await certificate(plane)
    const server = createServer({ key, cert })
    const proxy = new LyingProxy(server, `https://${plane.address.ip}:${await listening(server, plane.address.ip)}`)
    server.on('request', (incoming, outgoing) => proxy.#forward(incoming, outgoing, { plane, ca }))
    return proxy
  }

  /** Lists lack the ApiKeys of this name from now on, and every client lists again. @param name undefined: none */
  hide(name: string | undefined): void {
    this.#hidden = name
    for (const watch of this.#watches) watch.end(`${JSON.stringify(EXPIRED)}\n`)
  }

  close(): void {
    closeAll(this.#server)
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse, to: { plane: ControlPlane; ca: Buffer }): void {
    const { url = '', method, headers } = incoming
    const isCollection = method === 'GET' && COLLECTION.test(url)
    const isWatch = isCollection && url.includes('watch=')
    if (isCollection) delete headers['accept-encoding']
    forward(incoming, outgoing, to, (answer) => {
      if (isCollection && !isWatch && answer.statusCode === 200) return void this.#list(answer, outgoing)
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      outgoing.flushHeaders()
      answer.pipe(outgoing)
      if (!isWatch) return
      this.#watches.add(outgoing)
      outgoing.on('close', () => this.#watches.delete(outgoing))
    })
  }

  async #list(answer: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const list = JSON.parse(await text(answer)) as List
    const items = list.items.filter(({ metadata }) => metadata.name !== this.#hidden)
    if (items.length < list.items.length) this.lies += 1
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ...list, items }))
  }
}
