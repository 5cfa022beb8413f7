/** Times how long ended keys still work, and how long paid ones are refused, in a process of its own: see probe-process.ts. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { objectPath, type TestObject } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { keyPath, type KeyName } from './many-keys.ts'

export type Ending = 'suspend' | 'delete'

/** A probe whose answer does not change within this time counts as one that never changes, with this time, ms. */
export const PROBE_DEADLINE_MS = 150_000

export interface ProbeSite {
  readonly server: string
  readonly labDir: string
  readonly gateways: readonly string[]
  /** Of the model that paid keys call. The probe process answers for it. */
  readonly model?: { readonly ip: string; readonly port: number; readonly name: string }
}

/** A write of one probe. `pay`: a Credit. `issue`: an ApiKey, and the path of its Secret, which will hold the value. `rotate`: another hash. */
export type ProbedWrite =
  | { readonly do: Ending; readonly path: string }
  | { readonly do: 'pay'; readonly object: TestObject }
  | { readonly do: 'issue'; readonly object: TestObject; readonly secret: string }
  | { readonly do: 'rotate'; readonly path: string; readonly sha256: string }

/** To the process: a key and the write that changes its answers, or the end of the process after one more question about every ended key. */
export type ProbeRequest = { readonly id: number; readonly credential: string; readonly write: ProbedWrite } | 'close'

/** From the process: the time from the API server's answer until the slowest gateway answers otherwise, ms; or the quality of all probes. */
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

  constructor({ site: { plane }, gateways }: Stack, model?: ProbeSite['model']) {
    const { server, address } = plane
    const site: ProbeSite = { server, labDir: address.folder, gateways: gateways.map(({ url }) => url), ...(model && { model }) }
    const program = join(import.meta.dirname, 'probe-process.ts')
    this.#child = fork(program, [JSON.stringify(site)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#closed.promise.catch(() => undefined) // every waiting call gets the rejection
    this.#child.on('message', (message) => this.#take(message as ProbeReply)) // only probe-process.ts sends to it
    this.#child.once('exit', (code) => this.#ended(new Error(`the probe process has ended with code ${code}`)))
  }

  /** Ends a key that works, and resolves when every gateway refuses it. @returns how long it still worked, ms */
  end(key: KeyName, credential: string, ending: Ending): Promise<number> {
    return this.#probe(credential, { do: ending, path: keyPath(key) })
  }

  /** Creates the first Credit of an account whose key is refused, and resolves when every gateway admits it. @returns how long it was refused, ms */
  pay(credit: TestObject, credential: string): Promise<number> {
    return this.#probe(credential, { do: 'pay', object: credit })
  }

  /** Creates an ApiKey, and resolves when its value is in its Secret and every gateway admits it. @returns how long that took, ms */
  issue({ namespace, name }: KeyName, object: TestObject): Promise<number> {
    return this.#probe('', { do: 'issue', object, secret: objectPath('v1', 'Secret', namespace, name) })
  }

  /** Gives a key with source.type Hash another value, and resolves when every gateway admits it. @returns how long it was refused, ms */
  rotate(key: KeyName, credential: string, sha256: string): Promise<number> {
    return this.#probe(credential, { do: 'rotate', path: keyPath(key), sha256 })
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

  #probe(credential: string, write: ProbedWrite): Promise<number> {
    const id = this.#next++
    const waiting = Promise.withResolvers<number>()
    this.#pending.set(id, waiting)
    this.#send({ id, credential, write })
    return waiting.promise
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
