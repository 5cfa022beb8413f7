/** A small model server for every route of a model call. README.md lists the directives that its answers follow. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { chatFormat, completionsFormat } from './stub-completions.ts'
import { parseStubDirectives, type StubDirectives } from './stub-directives.ts'
import { answerWords, lastText, parseStubRequest, type StubAnswer, type StubFormat, type StubRequest } from './stub-format.ts'
import { countTokensFormat, messagesFormat } from './stub-messages.ts'
import { responsesFormat } from './stub-responses.ts'
import { speechFormat, transcriptionsFormat } from './stub-sounds.ts'
import { embeddingsFormat, rerankFormat } from './stub-vectors.ts'

/** A received request, for tests of the gateway's requests. */
export interface StubReceived {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** Resolves at the end of the exchange; 'aborted' = the other side closed first. */
  readonly ended: Promise<'answered' | 'aborted'>
}

/** Options of a stub. */
export interface StubModelOptions {
  readonly host?: string
  /** 0 = any free port. */
  readonly port?: number
  /** Names that `GET /v1/models` lists; any name is answered. */
  readonly models?: readonly string[]
  /** Called before the answer. The answer waits if a promise is returned. */
  readonly onRequest?: (received: StubReceived) => unknown
}

/** A running stub. */
export interface StubModel {
  readonly port: number
  /** Base URL in front of `/v1`. */
  readonly url: string
  /** Stops the server and ends open connections. */
  close(): Promise<void>
}

/** @throws the listen error (EADDRINUSE ...) */
export async function startStubModel(options: StubModelOptions = {}): Promise<StubModel> {
  const host = options.host ?? '127.0.0.1'
  const server = createServer((request, response) => {
    handle(request, response, options).catch(() => response.destroy()) // only a client that has left causes this
  })
  await once(server.listen(options.port ?? 0, host), 'listening')
  const { port } = server.address() as AddressInfo // a listener on TCP has no pipe name
  const close = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return { port, url: `http://${host}:${port}`, close }
}

async function handle(request: IncomingMessage, response: ServerResponse, options: StubModelOptions): Promise<void> {
  const { method = '', headers, url = '' } = request
  const path = url.replace(/\?.*$/, '')
  const ended = new Promise<'answered' | 'aborted'>((resolve) => {
    response.once('close', () => resolve(response.writableFinished ? 'answered' : 'aborted'))
  })
  const body = await buffer(request)
  await options.onRequest?.({ method, path, headers, body, ended })
  const format = method === 'POST' ? formats.get(path) : undefined
  if (format !== undefined) return answer(request, response, format, body)
  const text = method === 'GET' ? pageAt(path, options.models ?? ['stub']) : undefined
  sendJson(response, text === undefined ? 404 : 200, text ?? NO_ROUTE)
}

const NO_ROUTE = '{"error":{"message":"the stub model has no such route","type":"not_found_error"}}'

function pageAt(path: string, models: readonly string[]): string | undefined {
  if (path === '/health') return '{"status":"ok"}'
  const data = models.map((id) => ({ id, object: 'model', created: 0, owned_by: 'stub' }))
  return path === '/v1/models' ? JSON.stringify({ object: 'list', data }) : undefined
}

const formats: ReadonlyMap<string, StubFormat> = new Map([
  ['/v1/chat/completions', chatFormat],
  ['/v1/completions', completionsFormat],
  ['/v1/responses', responsesFormat],
  ['/v1/embeddings', embeddingsFormat],
  ['/v1/rerank', rerankFormat],
  ['/v1/audio/transcriptions', transcriptionsFormat],
  ['/v1/audio/speech', speechFormat],
  ['/v1/messages', messagesFormat],
  ['/v1/messages/count_tokens', countTokensFormat],
])

async function answer(request: IncomingMessage, response: ServerResponse, format: StubFormat, body: Buffer): Promise<void> {
  const parsed = await parseStubRequest(body, request.headers['content-type'])
  if (parsed === undefined) return sendJson(response, 400, format.failure(400))
  const session = request.headers['x-session-id']
  const asked = parseStubDirectives([String(session ?? ''), parsed.model, lastText(parsed)])
  if (asked.delay > 0) await sleep(asked.delay)
  if (asked['retry-after'] !== undefined) response.setHeader('retry-after', asked['retry-after'])
  if (asked.status !== undefined && asked.status >= 300) return sendJson(response, asked.status, format.failure(asked.status))
  return reply(response, answerTo(parsed, asked, format), format, asked)
}

/** Streams what is sound, and what was asked for as a stream, if the route has streams. */
async function reply(response: ServerResponse, content: StubAnswer, { plain, pieces }: StubFormat, asked: StubDirectives): Promise<void> {
  if (plain && !(pieces && content.request.stream)) return sendPlain(response, plain(content), asked)
  const type = plain ? 'text/event-stream; charset=utf-8' : 'audio/wav'
  return sendPieces(response, pieces?.(content) ?? [], { ...asked, type })
}

function answerTo(request: StubRequest, asked: StubDirectives, format: StubFormat): StubAnswer {
  const wanted = format.hasUsageOption !== true || request.stream !== true || request.stream_options?.include_usage === true
  return {
    id: `stub-${process.hrtime.bigint().toString(36)}`,
    createdSeconds: Math.floor(Date.now() / 1000),
    request,
    inputTokens: format.inputTokens(request),
    usage: wanted && asked.nousage === undefined,
    ...answerWords(request, asked.words),
  }
}

interface StubPieces extends StubDirectives {
  /** Content type. */
  readonly type: string
}

async function sendPieces(response: ServerResponse, pieces: ReadonlyArray<string | Buffer>, how: StubPieces): Promise<void> {
  response.writeHead(200, { 'content-type': how.type, 'cache-control': 'no-cache' })
  response.flushHeaders()
  for (const [index, piece] of pieces.entries()) {
    if (response.destroyed) return
    if (index === how.hang) return
    if (index === how.cut) return breakOff(response)
    if (!response.write(piece)) await drained(response)
    if (how.gap > 0) await sleep(how.gap)
  }
  response.end()
}

function sendPlain(response: ServerResponse, text: string, asked: StubDirectives): void {
  if (asked.hang !== undefined) return
  if (asked.cut === undefined) return sendJson(response, 200, text)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.write(text.slice(0, text.length / 2))
  breakOff(response)
}

/** Breaks the connection once the written bytes have left, so that the other side receives exactly those. */
function breakOff(response: ServerResponse): void {
  response.write('', () => response.destroy())
}

async function drained(response: ServerResponse): Promise<void> {
  const done = new AbortController()
  await Promise.race(['drain', 'close'].map((event) => once(response, event, done))).finally(() => done.abort())
}

function sendJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
