/** The upstream side of a gateway between real servers on loopback and a raw client. Tests check the bytes on the wire. */
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { onTestFinished } from 'vitest'
import { GatewayError } from '../../gateway/errors.ts'
import { formatOfPath, Exchange } from '../../gateway/http/exchange.ts'
import { ErrorSender } from '../../gateway/http/send-error.ts'
import { chatCompletions } from '../../gateway/dialects/chat-completions.ts'
import type { Dialect } from '../../gateway/dialects/dialect.ts'
import { DIALECTS } from '../../gateway/dialects/dialects.ts'
import { requestBody } from '../../gateway/dialects/request-body.ts'
import { declared } from '../../gateway/dialects/request-shape.ts'
import { systemClock } from '#platform/clock.ts'
import { LoopShare } from '#platform/loop-share.ts'
import { encodeModelRecord, type BackendRecord, type ModelRecord } from '#contract/records/model-record.ts'
import { ActiveExchanges } from '../../gateway/http/active-exchanges.ts'
import type { ForwardJob, Outcome } from '../../gateway/upstream/forward-job.ts'
import { translateBody } from '../../gateway/dialects/translation/translate-body.ts'
import { neededTranslations, NO_TRANSLATIONS, translationsOf } from '../../gateway/upstream/translated-call.ts'
import { forwardedHeaders } from '../../gateway/upstream/upstream-headers.ts'
import { readJson } from '../../gateway/dialects/json-body.ts'
import { Upstream, type UpstreamOptions } from '../../gateway/upstream/upstream.ts'
import { freePort } from './free-port.ts'
import { listening } from './listening.ts'
import { sharedBodyReader } from './shared-body-reader.ts'
import { backendRecord as anyBackend, modelRecord as shopModel } from './records.ts'

type RoutePath = Dialect['path']

/** Length of a "second" of the upstream side in these tests, ms. */
export const TICK_MS = 5

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
}

export interface FakeBackend {
  readonly address: string
  readonly server: Server
  readonly received: Received[]
  /** Resolves with the response object of the first request whose client has disconnected. */
  readonly aborted: Promise<ServerResponse>
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export type Reply = (response: ServerResponse, received: Received) => void

/** Starts a model server that answers by `reply`; it ends with the test. */
export async function startBackend(reply: Reply): Promise<FakeBackend> {
  const received: Received[] = []
  const { promise: aborted, resolve } = Promise.withResolvers<ServerResponse>()
  const server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) resolve(response)
    })
    void readAll(request).then((body) => {
      const entry = { path: request.url ?? '', headers: request.headers, rawHeaders: request.rawHeaders, body }
      received.push(entry)
      reply(response, entry)
    })
  })
  const port = await listenInTest(server)
  return { address: `127.0.0.1:${port}`, server, received, aborted }
}

export async function deadAddress(): Promise<string> {
  return `127.0.0.1:${await freePort()}`
}

export function backendRecord(changes: Partial<BackendRecord> = {}): BackendRecord {
  return anyBackend({ name: 'main', weight: 100, ...changes })
}

/** A model with the name `llama` in namespace `shop`, for keys of that namespace. */
export function modelRecord(changes: Partial<ModelRecord> = {}): ModelRecord {
  const timeouts = { firstByteSeconds: 600, idleSeconds: 600, totalSeconds: 3600 }
  const backends = [backendRecord()]
  return shopModel('llama', { revision: 1, uid: 'uid-1', createdMs: 1, timeouts, backends, ...changes })
}

export class Harness {
  readonly upstream: Upstream
  readonly outcomes: Outcome[] = []
  readonly refusals: GatewayError[] = []
  /** Outcomes of the refusals, in the same order. */
  readonly refused: Outcome[] = []
  job: Partial<ForwardJob> = {}
  readonly exchanges: Exchange[] = []
  readonly #active = new ActiveExchanges()
  readonly #server: Server
  port = 0

  constructor(options: Partial<UpstreamOptions> = {}) {
    this.upstream = new Upstream({
      addresses: { allowLoopback: true },
      credentials: (sums) => sums && undefined,
      forwarded: forwardedHeaders(),
      loop: new LoopShare(systemClock),
      answers: sharedBodyReader,
      tickMs: TICK_MS,
      random: () => 0,
      ...options,
    })
    const errors = new ErrorSender()
    this.#server = createServer((request, response) => void this.#serve(request, response, errors))
    onTestFinished(() => this.upstream.close())
  }

  async start(): Promise<this> {
    this.port = await listenInTest(this.#server)
    return this
  }

  /** Puts one model whose backends have these endpoints, first picked first. */
  serve(addresses: readonly string[], changes: Partial<ModelRecord> = {}, backend: Partial<BackendRecord> = {}): void {
    const backends = addresses.map((address, i) => backendRecord({ name: `b${i}`, endpoints: [address], ...backend }))
    this.put(modelRecord({ ...(backends.length === 0 ? {} : { backends }), ...changes }))
  }

  put(record: ModelRecord): void {
    if (!this.upstream.models.put(record.uid, encodeModelRecord(record))) throw new Error('the record of the test cannot be read')
  }

  async post(path: RoutePath, body: object | string, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await this.open(path, body, headers)
    const text = (await readAll(response)).toString('utf8')
    return { status: response.statusCode ?? 0, headers: response.headers, text }
  }

  open(path: RoutePath, body: object | string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        port: this.port,
        host: '127.0.0.1',
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
      })
      request.on('response', resolve).on('error', reject)
      request.end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  }

  drain(graceMs: number): Promise<void> {
    return this.#active.drain(graceMs, systemClock)
  }

  async #serve(request: IncomingMessage, response: ServerResponse, errors: ErrorSender): Promise<void> {
    const path = request.url as RoutePath
    const exchange = new Exchange(request, response, formatOfPath(path))
    this.exchanges.push(exchange)
    this.#active.begin(exchange)
    response.on('close', () => this.#active.end(exchange))
    const body = readJson(await readAll(request))
    if (body === undefined) throw new Error('the test sends no JSON object')
    const askedName = String(body.value.model)
    const model = this.upstream.models.resolve('shop', askedName)
    if (model === undefined) throw new Error(`the test asks for an unknown model ${askedName}`)
    const dialect = DIALECTS.get(path) ?? chatCompletions
    const stream = body.value.stream === true
    const { wantsUsage, choices } = declared(body.value, dialect)
    const needed = neededTranslations(dialect, model)
    const results = needed?.options.map((options) => translateBody(body.bytes, dialect, options)) ?? []
    const translations = needed ? translationsOf(needed, results) : NO_TRANSLATIONS
    if (translations instanceof GatewayError)
      return this.#ended(exchange, { error: translations, wasSent: false, usage: undefined }, errors)
    const job = {
      exchange,
      dialect,
      model,
      askedName,
      stream,
      wantsUsage,
      choices,
      body: requestBody(body, askedName, dialect.hasUsageOption && stream && !wantsUsage),
      translations,
      ...this.job,
    }
    this.#ended(exchange, await this.upstream.forward(job), errors)
  }

  #ended(exchange: Exchange, outcome: Outcome, errors: ErrorSender): void {
    const { error, wasSent } = outcome
    if (wasSent || !error) {
      this.outcomes.push(outcome)
      return
    }
    this.refusals.push(error)
    this.refused.push(outcome)
    errors.send(exchange, error)
  }
}

/** A gateway in front of one server, with what a test changes of the model, of its backend, or of the gateway. */
export async function gatewayTo(
  reply: Reply,
  {
    model,
    backend: changes,
    ...options
  }: Partial<UpstreamOptions> & { model?: Partial<ModelRecord>; backend?: Partial<BackendRecord> } = {},
): Promise<{ readonly gateway: Harness; readonly backend: FakeBackend }> {
  const backend = await startBackend(reply)
  const gateway = await new Harness(options).start()
  gateway.serve([backend.address], model, changes)
  return { gateway, backend }
}

export const CHAT: RoutePath = '/v1/chat/completions'
export const MESSAGES: RoutePath = '/v1/messages'
export const HELLO = { model: 'llama', messages: [{ role: 'user', content: 'hi' }] }
export const HELLO_STREAM = { ...HELLO, stream: true }

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return (response) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
  }
}

export function sse(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' })
}

export function chunk(content: string, finish: string | null = null, model = 'llama'): string {
  return `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', model, choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`
}

export const DONE = 'data: [DONE]\n\n'

export async function readAll(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const part of stream) chunks.push(part)
  return Buffer.concat(chunks)
}

/** Waits until `check` holds; for states that raise no event. The deadline only catches hangs. */
export async function until(check: () => boolean, deadlineMs = 60_000): Promise<void> {
  const end = Date.now() + deadlineMs
  while (!check()) {
    if (Date.now() > end) throw new Error(`waited ${deadlineMs} ms in vain for ${check.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** Listens until the test ends. @returns the port */
export async function listenInTest(server: Server): Promise<number> {
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return listening(server)
}
