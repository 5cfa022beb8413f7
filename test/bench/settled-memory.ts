/** The memory that a running program keeps: read over its inspector, after two collections of garbage. */
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import type { Program } from '../support/program.ts'
import { untilIdle } from './many-keys.ts'

/** Time after the last work of the queue, for writes for which nobody waits, ms. */
const SETTLE_MS = 6_000

export interface SettledMemory {
  /** Heap and buffers, bytes. */
  readonly bytes: number
  /** Resident, MiB. */
  readonly rssMib: number
}

/** The inspector of one program. */
export class Inspector {
  readonly #address: string

  private constructor(address: string) {
    this.#address = address
  }

  static async at(ip: string): Promise<Inspector> {
    return new Inspector(`${ip}:${await freePort()}`)
  }

  /** The option of Node with which the program starts. */
  get option(): string {
    return `--inspect=${this.#address}`
  }

  /** @param operator the program with this inspector, which has nothing more to begin */
  async settled(operator: Program): Promise<SettledMemory> {
    await untilIdle(operator)
    await sleep(SETTLE_MS)
    const session = await Session.open(this.#address)
    try {
      for (let pass = 0; pass < 2; pass += 1) await session.call('HeapProfiler.collectGarbage')
      const expression = 'JSON.stringify(process.memoryUsage())'
      const { result } = (await session.call('Runtime.evaluate', { expression })) as { readonly result: { readonly value: string } }
      const { heapUsed, external, arrayBuffers, rss } = JSON.parse(result.value) as NodeJS.MemoryUsage
      return { bytes: heapUsed + Math.max(external, arrayBuffers), rssMib: rss / 2 ** 20 }
    } finally {
      session.close()
    }
  }
}

/** One connection, for one call after the other. */
class Session {
  readonly #socket: WebSocket
  #calls = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
  }

  static async open(address: string): Promise<Session> {
    const [target] = (await (await fetch(`http://${address}/json/list`)).json()) as Array<{ readonly webSocketDebuggerUrl: string }>
    if (target === undefined) throw new Error(`there is no program at ${address}`)
    const socket = new WebSocket(target.webSocketDebuggerUrl)
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true })
      socket.addEventListener('error', () => reject(new Error(`the inspector at ${address} does not answer`)), { once: true })
    })
    return new Session(socket)
  }

  async call(method: string, params: object = {}): Promise<unknown> {
    const id = ++this.#calls
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const take = ({ data }: MessageEvent): void => {
      const answer = JSON.parse(String(data)) as {
        readonly id?: number
        readonly result?: unknown
        readonly error?: { readonly message: string }
      }
      if (answer.id !== id) return
      this.#socket.removeEventListener('message', take)
      if (answer.error) reject(new Error(`${method}: ${answer.error.message}`))
      else resolve(answer.result)
    }
    this.#socket.addEventListener('message', take)
    this.#socket.send(JSON.stringify({ id, method, params }))
    return await promise
  }

  close(): void {
    this.#socket.close()
  }
}
