/** A model server for coding agents: it greets, runs one tool if the prompt asks for it, and breaks its streams for the model `cut`. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import {
  type AgentFormat,
  type AgentRequest,
  chatFormat,
  isTooLong,
  messagesFormat,
  nextMove,
  parseAgentRequest,
  responsesFormat,
} from './scripted-replies.ts'

/** Name of the model whose streams break after some pieces. */
export const CUT_MODEL = 'cut'
/** So many pieces of a broken stream arrive: some of the text, but not its end. */
const CUT_AFTER = 4

const FORMATS: Readonly<Record<string, AgentFormat>> = {
  '/v1/chat/completions': chatFormat,
  '/v1/messages': messagesFormat,
  '/v1/responses': responsesFormat,
}
const COUNT_PATH = '/v1/messages/count_tokens'

/** A request that the model server received. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  /** Each message as JSON; none for a body without messages. */
  readonly messages: readonly string[]
}

export class ScriptedModel {
  readonly #server: Server
  #seen: SeenRequest[] = []

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy()) // only a client that has left causes this
    })
  }

  static async start(): Promise<ScriptedModel> {
    const model = new ScriptedModel()
    await once(model.#server.listen(0, '127.0.0.1'), 'listening')
    return model
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo // a listener on TCP has no pipe name
    return `http://127.0.0.1:${port}`
  }

  /** The requests since the last call. */
  takeSeen(): SeenRequest[] {
    return this.#seen.splice(0)
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request
    const path = url.replace(/\?.*$/, '')
    const parsed = parseAgentRequest((await buffer(request)).toString('utf8'))
    this.#seen.push({ method, path, messages: messagesOf(parsed) })
    const format = FORMATS[path]
    if (method === 'POST' && path === COUNT_PATH) return sendJson(response, 200, '{"input_tokens":1000}')
    if (method !== 'POST' || format === undefined || parsed === undefined)
      return sendJson(response, 404, '{"error":{"message":"no such route"}}')
    reply(response, format, parsed)
  }
}

function messagesOf(request: AgentRequest | undefined): string[] {
  return (request?.messages ?? []).map((message) => JSON.stringify(message))
}

/** In the words of llama-server. */
const OVERFLOW = {
  ...{ code: 400, type: 'exceed_context_size_error', n_prompt_tokens: 5_000, n_ctx: 4_096 },
  message: 'request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it',
}

function reply(response: ServerResponse, format: AgentFormat, request: AgentRequest): void {
  if (isTooLong(request)) return sendJson(response, 400, JSON.stringify({ error: OVERFLOW }))
  if (request.stream === true) return stream(response, format, request)
  sendJson(response, 200, format.plain(request.model, nextMove(request)))
}

function sendJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
}

function stream(response: ServerResponse, format: AgentFormat, request: AgentRequest): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const pieces = format.pieces(request.model, nextMove(request))
  if (request.model !== CUT_MODEL) {
    response.end(pieces.join(''))
    return
  }
  response.write(pieces.slice(0, CUT_AFTER).join(''))
  response.write('', () => response.destroy()) // after the pieces have left
}
