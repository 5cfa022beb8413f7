import type { ServerResponse } from 'node:http'
import type { FakeChange, FakeObject } from './fake-object-store.ts'

/** One open watch that a test controls. */
export class FakeWatch {
  /** Collection, namespace and resourceVersion that the client asked for. */
  readonly asked: { readonly collection: string; readonly namespace: string; readonly version: number; readonly query: URLSearchParams }
  /** Resolves when the client has disconnected or the test has ended the watch. */
  readonly closed: Promise<void>
  readonly #response: ServerResponse
  #silent = false

  constructor(response: ServerResponse, asked: FakeWatch['asked']) {
    this.#response = response
    this.asked = asked
    this.closed = new Promise((resolve) => response.once('close', () => resolve()))
  }

  /** Sends a change of the store, unless the watch is silent or covers other objects. */
  change(change: FakeChange): void {
    const { collection, namespace } = this.asked
    if (this.#silent || change.collection !== collection) return
    if (namespace !== '' && change.object.metadata.namespace !== namespace) return
    this.send(change.type, change.object)
  }

  /** Sends any event, independently of the store: duplicates, stale events, in any order. */
  send(type: string, object: unknown): void {
    this.sendBytes(Buffer.from(`${JSON.stringify({ type, object })}\n`))
  }

  sendBytes(bytes: Uint8Array): void {
    if (!this.#response.destroyed) this.#response.write(bytes)
  }

  bookmark(version: number): void {
    this.send('BOOKMARK', { metadata: { resourceVersion: String(version) } })
  }

  /** Sends an ERROR with 410 inside the stream. */
  expire(): void {
    this.fail(410, 'Expired')
  }

  /** Sends any ERROR inside the stream. */
  fail(code: number, reason: string): void {
    this.send('ERROR', { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code, message: reason })
    this.#response.end()
  }

  /** Makes the connection half-open: it stays, and delivers no further events. */
  silence(): void {
    this.#silent = true
  }

  /** Ends the watch, as the server does at its time-out. */
  end(): void {
    this.#response.end()
  }

  /** Ends the connection with an RST. */
  reset(): void {
    this.#response.socket?.resetAndDestroy()
  }

  /** Sends half a line and then an RST. */
  resetMidLine(type: string, object: FakeObject): void {
    const line = JSON.stringify({ type, object })
    this.#response.write(line.slice(0, line.length / 2), () => this.reset())
  }
}
