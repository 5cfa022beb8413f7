/**
 * A small model server that speaks chat completions and messages and says what it is told to (`stub-directives.ts`).
 * `make run` starts it as the backend of the example; tests start it on port 0.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseStubDirectives, type StubDirectives } from './stub-directives.ts'
import {
  answerWords,
  chatCompletionsFormat,
  inputTokens,
  lastMessage,
  messagesFormat,
  parseStubRequest,
  type StubAnswer,
  type StubFormat,
  type StubRequest,
} from './stub-replies.ts'

/** A request as it came in, for tests that look at what the gateway sends. */
export interface StubReceived {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** Resolves when the exchange is over; 'aborted' = the other side went first. */
  readonly ended: Promise<'answered' | 'aborted'>
}

/** How to start one. */
export interface StubModelOptions {
  readonly host?: string
  /** 0 = any free port. */
  readonly port?: number
  /** Names that `GET /v1/models` lists; any name is answered. */
  readonly models?: readonly string[]
  readonly onRequest?: (received: StubReceived) => void
}

/** A running stub. */
export interface StubModel {
  readonly port: number
  /** Base URL in front of `/v1`. */
  readonly url: string
  /** Ends open connections too. */
  close(): Promise<void>
}

/** @throws the listen error (EADDRINUSE ...) */
export async function startStubModel(options: StubModelOptions = {}): Promise<StubModel> {
  const host = options.host ?? '127.0.0.1'
  const server = createServer((request, response) => {
    handle(request, response, options).catch(() => response.destroy()) // only a client that has gone ends here
  })
  await listen(server, host, options.port ?? 0)
  const { port } = server.address() as AddressInfo // listening on TCP, so it is no pipe name
  return { port, url: `http://${host}:${port}`, close: () => close(server) }
}

async function handle(request: IncomingMessage, response: ServerResponse, options: StubModelOptions): Promise<void> {
  const { method = '', headers, url = '' } = request
  const path = url.replace(/\?.*$/, '')
  const ended = new Promise<'answered' | 'aborted'>((resolve) => {
    response.once('close', () => resolve(response.writableFinished ? 'answered' : 'aborted'))
  })
  const body = await readBody(request)
  options.onRequest?.({ method, path, headers, body, ended })
  const format = method === 'POST' ? formats.get(path) : undefined
  if (format !== undefined) return answer(request, response, format, body)
  const text = method === 'GET' ? pageAt(path, options.models ?? ['stub']) : undefined
  sendJson(response, text === undefined ? 404 : 200, text ?? NO_ROUTE)
}

const NO_ROUTE = '{"error":{"message":"the stub model has no such route","type":"not_found_error"}}'

function pageAt(path: string, models: readonly string[]): string | undefined {
  if (path === '/health') return '{"status":"ok"}'
  return path === '/v1/models' ? modelList(models) : undefined
}

const formats: ReadonlyMap<string, StubFormat> = new Map([
  ['/v1/chat/completions', chatCompletionsFormat],
  ['/v1/messages', messagesFormat],
])

async function answer(request: IncomingMessage, response: ServerResponse, format: StubFormat, body: Buffer): Promise<void> {
  const parsed = parsedOrUndefined(body)
  if (parsed === undefined) return sendJson(response, 400, format.failure(400))
  const session = request.headers['x-session-id']
  const told = parseStubDirectives([String(session ?? ''), parsed.model, lastMessage(parsed)])
  if (told.delay > 0) await sleep(told.delay)
  if (told['retry-after'] !== undefined) response.setHeader('retry-after', told['retry-after'])
  if (told.status !== undefined && told.status >= 300) return sendJson(response, told.status, format.failure(told.status))
  const reply = answerTo(parsed, told, format)
  if (parsed.stream === true) return stream(response, format.pieces(reply), told)
  plain(response, format.plain(reply), told)
}

function answerTo(request: StubRequest, told: StubDirectives, format: StubFormat): StubAnswer {
  const wanted = format === messagesFormat || request.stream !== true || request.stream_options?.include_usage === true
  return {
    id: `stub-${process.hrtime.bigint().toString(36)}`,
    createdSeconds: Math.floor(Date.now() / 1000),
    model: request.model,
    inputTokens: inputTokens(request),
    usage: wanted && told.nousage === undefined,
    ...answerWords(request, told.words),
  }
}

async function stream(response: ServerResponse, pieces: readonly string[], told: StubDirectives): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  response.flushHeaders()
  for (const [index, piece] of pieces.entries()) {
    if (response.destroyed) return
    if (index === told.hang) return
    if (index === told.cut) return breakOff(response)
    if (!response.write(piece)) await drained(response)
    if (told.gap > 0) await sleep(told.gap)
  }
  response.end()
}

function plain(response: ServerResponse, text: string, told: StubDirectives): void {
  if (told.hang !== undefined) return
  if (told.cut === undefined) return sendJson(response, 200, text)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.write(text.slice(0, text.length / 2))
  breakOff(response)
}

/** Breaks the connection once what was written has left, so that the other side sees exactly that much. */
function breakOff(response: ServerResponse): void {
  response.write('', () => response.destroy())
}

async function drained(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}

function sendJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

function modelList(models: readonly string[]): string {
  const data = models.map((id) => ({ id, object: 'model', created: 0, owned_by: 'stub' }))
  return JSON.stringify({ object: 'list', data })
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function parsedOrUndefined(body: Buffer): StubRequest | undefined {
  try {
    return parseStubRequest(body.toString('utf8'))
  } catch {
    return undefined // answered with 400 by the caller
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
