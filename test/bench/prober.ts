/** Times how long ended keys still work, in a process of its own: see probe-process.ts. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Stack } from '../support/stack.ts'
import { keyPath, type KeyName } from './many-keys.ts'

export type Ending = 'suspend' | 'delete'

/** A probe that is not refused within this time counts as never refused, with this time, ms. */
export const PROBE_DEADLINE_MS = 150_000

export interface ProbeSite {
  readonly server: string
  readonly labDir: string
  readonly gateways: readonly string[]
}

/** To the process: a key to end, or the end of the process after one more question about every ended key. */
export type ProbeRequest = { readonly id: number; readonly path: string; readonly credential: string; readonly ending: Ending } | 'close'

/** From the process: the time from the API server's answer until the slowest gateway refused the key, ms; or the quality of all probes. */
export type ProbeReply = { readonly id: number; readonly ms: number } | { readonly id: number; readonly error: string } | ProbeQuality

export interface ProbeQuality {
  /** Time between two questions about the same waiting key to the same gateway, p99, ms: no measured time is too long by more. */
  readonly resolutionMs: number
  readonly admittedAgain: number
}

/** The bench's side. `close` it, and `stop` it also after a failure. */
export class Prober {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, PromiseWithResolvers<number>>()
  readonly #closed = Promise.withResolvers<ProbeQuality>()
  #next = 0

  constructor({ site: { plane }, gateways }: Stack) {
    const site: ProbeSite = { server: plane.server, labDir: plane.address.folder, gateways: gateways.map(({ url }) => url) }
    const program = join(import.meta.dirname, 'probe-process.ts')
    this.#child = fork(program, [JSON.stringify(site)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#closed.promise.catch(() => undefined) // every waiting call gets the rejection
    this.#child.on('message', (message) => this.#take(message as ProbeReply)) // only probe-process.ts sends to it
    this.#child.once('exit', (code) => this.#ended(new Error(`the probe process has ended with code ${code}`)))
  }

  /** Ends a key that works, and resolves when every gateway refuses it. @returns how long it still worked, ms */
  end(key: KeyName, credential: string, ending: Ending): Promise<number> {
    const id = this.#next++
    const waiting = Promise.withResolvers<number>()
    this.#pending.set(id, waiting)
    this.#send({ id, path: keyPath(key), credential, ending })
    return waiting.promise
  }

  /** Call this once all probes have resolved. */
  async close(): Promise<ProbeQuality> {
    this.#send('close')
    return this.#closed.promise
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill()
    await exited
  }

  #send(request: ProbeRequest): void {
    this.#child.send(request)
  }

  #take(reply: ProbeReply): void {
    if (!('id' in reply)) return this.#closed.resolve(reply)
    const waiting = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    if ('ms' in reply) waiting?.resolve(reply.ms)
    else waiting?.reject(new Error(reply.error))
  }

  #ended(error: Error): void {
    this.#closed.reject(error)
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }
}
