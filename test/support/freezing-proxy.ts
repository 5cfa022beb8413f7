/**
 * Stands between an operator and the API server and can freeze the operator's view: its watches stay open and bring nothing more, as over
 * a half-open connection, and no new list or watch is answered. Every other call goes through.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { ControlPlane } from './control-plane.ts'
import { certificate, closeAll, forward } from './crash-proxy.ts'
import { listening } from './listening.ts'

/** A collection, which clients list and watch. The path of one object ends in its name. */
const COLLECTION = /\/(apikeys|servedmodels|services|namespaces|endpointslices)(\?|$)/

export class FreezingProxy {
  readonly url: string
  readonly #server: Server
  readonly #answers = new Set<IncomingMessage>()
  #frozen = false

  private constructor(server: Server, url: string) {
    this.#server = server
    this.url = url
  }

  static async start(plane: ControlPlane): Promise<FreezingProxy> {
    const { key, cert, ca } = await certificate(plane)
    const server = createServer({ key, cert })
    const proxy = new FreezingProxy(server, `https://${plane.address.ip}:${await listening(server, plane.address.ip)}`)
    server.on('request', (incoming, outgoing) => proxy.#forward(incoming, outgoing, plane, ca))
    return proxy
  }

  /** From now on the operator gets no further events. */
  freeze(): void {
    this.#frozen = true
    for (const answer of this.#answers) answer.pause()
  }

  thaw(): void {
    this.#frozen = false
    for (const answer of this.#answers) answer.resume()
  }

  close(): void {
    closeAll(this.#server)
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse, plane: ControlPlane, ca: Buffer): void {
    const isView = incoming.method === 'GET' && COLLECTION.test(incoming.url ?? '')
    forward(incoming, outgoing, { plane, ca }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      outgoing.flushHeaders()
      answer.on('data', (chunk: Buffer) => outgoing.write(chunk)) // a pipe would resume a paused answer
      answer.on('end', () => outgoing.end())
      answer.on('error', () => outgoing.destroy())
      if (!isView) return
      this.#answers.add(answer)
      answer.on('close', () => this.#answers.delete(answer))
      if (this.#frozen) answer.pause()
    })
  }
}
