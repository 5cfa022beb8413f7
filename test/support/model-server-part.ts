/** A real model server: llama-server with the tiny random model. The words are nonsense, the protocol is real. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { cacheFolder } from './control-plane.ts'
import { freePort } from './free-port.ts'
import { ManagedProcess } from './managed-process.ts'
import { waitFor } from './wait-for.ts'

const HOME = join(cacheFolder(), 'llama-3.22.1')

export const UPSTREAM_MODEL = 'tiny'

const PURPOSES = { chat: [], embeddings: ['--embedding', '--pooling', 'mean'], rerank: ['--reranking', '--pooling', 'rank'] } as const
type Purpose = keyof typeof PURPOSES

/** Biases the token that ends an answer, so that a caller ends an answer as soon as the demanded call is complete. */
export const ENDS_AFTER_CALL = ['--logit-bias', '2+100']

export class ModelServerPart {
  readonly ip: string
  readonly port: number
  readonly process: ManagedProcess

  private constructor(ip: string, port: number, process: ManagedProcess) {
    this.ip = ip
    this.port = port
    this.process = process
  }

  /**
   * Starts it with one thread, since more threads would compete with the tests on a small machine.
   * @param purpose a server has one
   * @param more arguments, which replace earlier ones
   */
  static async start(folder: string, ip: string, purpose: Purpose = 'chat', more: readonly string[] = []): Promise<ModelServerPart> {
    const port = await freePort()
    const listen = ['--host', ip, '--port', String(port), '--alias', UPSTREAM_MODEL]
    const size = ['--ctx-size', '16384', '--parallel', '4', '--threads', '1', '--no-warmup', '--metrics', '--threads-http', '4']
    const argv = [
      join(HOME, 'build/bin/llama-server'),
      '--model',
      join(HOME, 'tiny.gguf'),
      ...listen,
      ...size,
      ...PURPOSES[purpose],
      ...more,
    ]
    const name = purpose === 'chat' ? 'llama-server' : `llama-server-${purpose}`
    const part = new ModelServerPart(ip, port, new ManagedProcess({ name, argv, env: {}, logFile: join(folder, `${name}.log`) }))
    await part.start()
    return part
  }

  /**
   * Starts one with a model that makes calls of tools where the request demands one. An answer may fill the whole context.
   * @param more arguments, which replace earlier ones
   */
  static async startCaller(folder: string, ip: string, more: readonly string[] = []): Promise<ModelServerPart> {
    const model = join(folder, 'caller.gguf')
    execFileSync('python3', [join(import.meta.dirname, '../parts/make-tiny-gguf.py'), model, '--calls'], { stdio: 'ignore' })
    return await ModelServerPart.start(folder, ip, 'chat', ['--model', model, '--parallel', '1', ...more])
  }

  async start(): Promise<void> {
    await this.process.start()
    await waitFor('llama-server to be healthy', async () => (await fetch(`${this.url}/health`)).ok)
  }

  get url(): string {
    return `http://${this.ip}:${this.port}`
  }

  async stop(): Promise<void> {
    await this.process.stop()
  }
}
