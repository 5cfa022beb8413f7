/**
 * Stands between a gateway and llama-server, and makes a model of random weights call the tools of `forced-turns.ts`.
 *
 * Real: the model server with its chat template, tokens, cache of prompts, grammar, parser of calls and stream, whose bytes pass unchanged. Forced:
 * which tool is called with which input, and the last text.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { NO_USAGE, type ReportedUsage, usageOf } from '../support/model-tap.ts'
import { type ChatRequest, forcedFields } from './forced-turns.ts'

const CALLS = '/v1/chat/completions'
/** llama-server answers with the prompt that its template makes of a request. */
const RENDER = '/apply-template'

/** A turn as the model server saw it. */
export interface ForcedTurn {
  /** The text before tokens are made of it. */
  readonly prompt: string
  readonly status: number
  /** As the server has reported it; nothing for a refusal. */
  readonly usage: ReportedUsage
}

export class ForcedModel {
  readonly #server: Server
  readonly #target: string
  #turns: ForcedTurn[] = []

  private constructor(target: string) {
    this.#target = target
    this.#server = createServer((request, response) => {
      this.#pass(request, response).catch(() => response.destroy()) // the gateway reports that as a failure of its backend
    })
  }

  /** @param target address of llama-server */
  static async start(target: string): Promise<ForcedModel> {
    const model = new ForcedModel(target)
    await once(model.#server.listen(0, '127.0.0.1'), 'listening')
    return model
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo // a listener on TCP has no pipe name
    return `http://127.0.0.1:${port}`
  }

  /** The turns since the last call. */
  takeTurns(): ForcedTurn[] {
    return this.#turns.splice(0)
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '/'
    const bytes = await buffer(request)
    if (path !== CALLS) {
      await this.#relay(await this.#ask(path, request.method ?? 'GET', bytes), response)
      return
    }
    const sent = JSON.parse(bytes.toString('utf8')) as ChatRequest // the gateway has checked the shape
    const body = JSON.stringify({ ...sent, ...forcedFields(sent) })
    const { prompt } = (await (await this.#ask(RENDER, 'POST', body)).json()) as { readonly prompt: string }
    const answer = await this.#ask(CALLS, 'POST', body)
    const text = await this.#relay(answer, response)
    this.#turns.push({ prompt, status: answer.status, usage: answer.ok ? usageOf(text) : NO_USAGE })
  }

  #ask(path: string, method: string, body: Buffer | string): Promise<Response> {
    const headers = { 'content-type': 'application/json' }
    return fetch(`${this.#target}${path}`, { method, headers, ...(method === 'POST' ? { body } : {}) })
  }

  /** Passes the bytes on as they come. @returns them as text */
  async #relay(answer: Response, response: ServerResponse): Promise<string> {
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' })
    const chunks: Uint8Array[] = []
    for await (const chunk of answer.body ?? []) {
      chunks.push(chunk)
      response.write(chunk)
    }
    response.end()
    return Buffer.concat(chunks).toString('utf8')
  }
}
