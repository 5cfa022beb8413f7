/** The bench's side of the probe process. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { ControlPlane } from '../support/control-plane.ts'
import { keyPath, type KeyName } from './key-watch.ts'
import type { Probe, ProbeChange, ProbeReply, ProbeRequest, ProbeSummary } from './probe-protocol.ts'

const PROGRAM = join(import.meta.dirname, 'probe-process.ts')

interface Pending {
  readonly resolve: (probe: Probe) => void
  readonly reject: (error: Error) => void
}

/** Times how long ended keys still work. `close` it, also after a failure. */
export class Prober {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #closed = Promise.withResolvers<ProbeSummary>()
  #next = 0

  /** @param gateways base URLs of the gateways to ask; a stopped gateway must not be among them */
  constructor(plane: ControlPlane, gateways: readonly string[]) {
    this.#child = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#closed.promise.catch(() => undefined) // every waiting call gets the rejection; without a waiting call, the rejection still counts as handled
    this.#child.on('message', (message) => this.#take(message as ProbeReply)) // only probe-process.ts sends to it
    this.#child.once('exit', (code) => this.#ended(new Error(`the probe process has ended with code ${code}`)))
    this.#send({ do: 'open', server: plane.server, labDir: plane.address.folder, gateways })
  }

  /** Ends a key that works, and resolves when every gateway refuses it. */
  probe(key: KeyName, credential: string, change: ProbeChange): Promise<Probe> {
    const id = this.#next++
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#send({ do: 'probe', id, path: keyPath(key), credential, change })
    })
  }

  /** Does not wait for probes: call `close` once all probes have resolved. */
  async close(): Promise<ProbeSummary> {
    this.#send({ do: 'close' })
    return this.#closed.promise
  }

  /** Ends the process, if it still runs. */
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
    if (reply.reply === 'closed') {
      this.#closed.resolve(reply)
      return
    }
    const pending = this.#pending.get(reply.id)
    this.#pending.delete(reply.id)
    if (reply.reply === 'probe') pending?.resolve(reply)
    else pending?.reject(new Error(reply.why))
  }

  #ended(error: Error): void {
    this.#closed.reject(error)
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }
}
