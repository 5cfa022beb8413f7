import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { KubeError, type KubeObject, namespaceOf, type ObjectRef, type Resource } from '#kube/port.ts'
import { ObjectStore, type StoreChange } from '../../standalone/object-store.ts'

export type Failure =
  | {
      readonly kind: 'status'
      readonly status: number
      readonly reason?: string
      readonly retryAfterSeconds?: number
      readonly cause?: string
    }
  /** Any body, Status or not. */
  | { readonly kind: 'body'; readonly status: number; readonly body: string }
  /** RST before the call takes effect. */
  | { readonly kind: 'reset' }
  /** The call takes effect, and its answer is lost. */
  | { readonly kind: 'lost-answer' }
  /** The call takes effect, and half of its answer arrives. */
  | { readonly kind: 'half-answer' }
  /** The call takes effect and is answered when the promise resolves. */
  | { readonly kind: 'slow'; readonly until: Promise<void> }

export interface FailureRule {
  /** HTTP method; WATCH for watches; default all. */
  readonly method?: string
  readonly path?: RegExp
  /** Default 1. */
  readonly times?: number
  readonly failure: Failure
}

export interface SeenCall {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly contentType: string | undefined
  readonly body: string
}

interface Route {
  readonly resource: Resource
  /** `name` is '' for a collection. */
  readonly ref: ObjectRef
  readonly subresource: string | undefined
}

interface WatchEvent {
  readonly version: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly plural: string
  readonly object: KubeObject
}

/** HTTP in front of an object store, only for failures that a real API server does not show on demand. */
export class FakeApiServer {
  readonly store = new ObjectStore({ persist: (change) => this.#record(change) })
  readonly calls: SeenCall[] = []
  readonly watches: FakeWatch[] = []
  /** Bearer tokens that are accepted; undefined = no check. */
  tokens: ReadonlySet<string> | undefined
  readonly #server: Server
  #rules: Array<{ rule: FailureRule; left: number }> = []
  #watchWaiters: Array<{ index: number; resolve: (watch: FakeWatch) => void }> = []
  #history: WatchEvent[] = []
  #version = 0
  #compacted = 0

  private constructor() {
    this.#server = createServer((request, response) => void this.#handle(request, response))
  }

  static async start(): Promise<FakeApiServer> {
    const fake = new FakeApiServer()
    await once(fake.#server.listen(0, '127.0.0.1'), 'listening')
    return fake
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  /** Writes a kubeconfig for this server. @param user fields of the user, e.g. {token} or {tokenFile} */
  writeKubeconfig(file: string, user: Record<string, string> = {}): string {
    const cluster = { server: `http://127.0.0.1:${this.port}`, 'insecure-skip-tls-verify': true }
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'fake',
      clusters: [{ name: 'fake', cluster }],
      users: [{ name: 'fake', user }],
      contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake' } }],
    }
    writeFileSync(file, JSON.stringify(config)) // JSON is YAML
    return file
  }

  /** The next matching calls fail in this way; rules are tried in the order given. */
  fail(rule: FailureRule): void {
    this.#rules.push({ rule, left: rule.times ?? 1 })
  }

  heal(): void {
    this.#rules = []
  }

  /** Forgets all history: an older watch or continue token is answered with 410. */
  compact(): void {
    this.#history = []
    this.#compacted = this.#version
  }

  /** @returns the watch number `index`, counted from 0, as soon as it is open */
  watch(index: number): Promise<FakeWatch> {
    const open = this.watches[index]
    return open ? Promise.resolve(open) : new Promise((resolve) => this.#watchWaiters.push({ index, resolve }))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await readCall(request)
    this.calls.push(call)
    const failure = this.#failureFor(call)
    if (failure && (await refuses(failure, response))) return
    try {
      if (this.tokens && !this.tokens.has(bearerOf(request))) throw new KubeError('Unauthorized', 401, 'Unauthorized')
      await this.#serve(call, response, failure)
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      sendStatus(response, error)
    }
  }

  #failureFor(call: SeenCall): Failure | undefined {
    const found = this.#rules.find(
      ({ rule, left }) => left > 0 && (rule.method ?? call.method) === call.method && (rule.path?.test(call.path) ?? true),
    )
    if (found) found.left -= 1
    return found?.rule.failure
  }

  async #serve(call: SeenCall, response: ServerResponse, failure: Failure | undefined): Promise<void> {
    const route = routeOf(call.path)
    if (!route) return sendText(response, 404, '404 page not found')
    if (call.method === 'WATCH') return this.#openWatch(call, route, response)
    const text = JSON.stringify(await this.#answer(call, route))
    if (failure?.kind === 'lost-answer') {
      response.socket?.resetAndDestroy()
      return
    }
    if (failure?.kind === 'half-answer') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
      response.write(text.slice(0, text.length / 2), () => response.socket?.resetAndDestroy())
      return
    }
    sendText(response, call.method === 'POST' ? 201 : 200, text)
  }

  async #answer(call: SeenCall, route: Route): Promise<unknown> {
    if (call.method === 'GET' && route.ref.name === '') return this.#list(call, route)
    const answer = await (call.method === 'GET' ? this.store.get(route.resource, route.ref) : this.#write(call, route))
    if (answer === undefined) throw new KubeError('NotFound', 404, 'there is no such object')
    return answer
  }

  /** @returns undefined for the deletion of an absent object */
  async #write({ method, query, contentType, body }: SeenCall, { resource, ref, subresource }: Route): Promise<unknown> {
    const sent = JSON.parse(body || '{}')
    if (method === 'POST') return this.store.create(resource, sent, { dryRun: query.get('dryRun') === 'All' })
    if (method === 'PUT') return this.store.update(resource, sent)
    if (method === 'DELETE') return (await this.store.remove(resource, ref, sent.preconditions)) === 'deleted' ? {} : undefined
    if (contentType === 'application/json-patch+json') return this.store.patch(resource, ref, sent)
    if (contentType === 'application/apply-patch+yaml' && subresource === 'status') return this.store.applyStatus(resource, sent)
    throw new KubeError('Other', 415, 'unsupported', { reason: 'UnsupportedMediaType' })
  }

  async #list({ query }: SeenCall, { resource, ref }: Route): Promise<unknown> {
    const token = query.get('continue')
    const { start, version } = token === null ? { start: 0, version: this.#version } : readContinue(token)
    this.#eventsAfter(version) // refuses a version that was compacted
    if (Number(query.get('resourceVersion')) > this.#version)
      throw new KubeError('Other', 504, 'too large', { reason: 'ResourceVersionTooLarge' })
    const objects = await this.store.list(resource, ref.namespace, query.get('labelSelector') ?? '')
    const limit = Number(query.get('limit') ?? Number.POSITIVE_INFINITY)
    const more = start + limit < objects.length
    const next = more ? { continue: Buffer.from(JSON.stringify({ version, start: start + limit })).toString('base64url') } : {}
    const items = objects.slice(start, start + limit).map(({ kind: _kind, apiVersion: _apiVersion, ...object }) => object) // as for built-in kinds
    return { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: String(version), ...next }, items }
  }

  #openWatch({ query }: SeenCall, { resource, ref }: Route, response: ServerResponse): void {
    const version = Number(query.get('resourceVersion') ?? 0)
    const missed = this.#eventsAfter(version)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const watch = new FakeWatch(response, { plural: resource.plural, namespace: ref.namespace, version })
    for (const event of missed) watch.deliver(event)
    this.watches.push(watch)
    this.#watchWaiters = this.#watchWaiters.filter(({ index, resolve }) => {
      const open = this.watches[index]
      if (open) resolve(open)
      return !open
    })
  }

  #eventsAfter(version: number): readonly WatchEvent[] {
    if (version < this.#compacted) throw new KubeError('Expired', 410, `too old resource version: ${version} (${this.#compacted})`)
    return this.#history.filter((event) => event.version > version)
  }

  /** The store counts one version for each change. */
  #record({ resource, before, after }: StoreChange): void {
    this.#version += 1
    const object = after ?? before
    if (!object) return
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) }
    const type = !before ? 'ADDED' : after ? 'MODIFIED' : 'DELETED'
    const event = { version: this.#version, type, plural: resource.plural, object: { ...object, metadata } } as const
    this.#history.push(event)
    for (const watch of this.watches) watch.deliver(event)
  }
}

export class FakeWatch {
  readonly asked: { readonly plural: string; readonly namespace: string; readonly version: number }
  /** Resolves when the client has disconnected or the test has ended the watch. */
  readonly closed: Promise<void>
  readonly #response: ServerResponse
  #silent = false

  constructor(response: ServerResponse, asked: FakeWatch['asked']) {
    this.#response = response
    this.asked = asked
    this.closed = new Promise((resolve) => response.once('close', () => resolve()))
  }

  deliver({ type, plural, object }: WatchEvent): void {
    if (this.#silent || this.asked.plural !== plural) return
    if (this.asked.namespace !== '' && this.asked.namespace !== namespaceOf(object)) return
    this.send(type, object)
  }

  /** Sends any event, independently of the store: duplicates, stale events, in any order. */
  send(type: string, object: unknown): void {
    if (!this.#response.writableEnded && !this.#response.destroyed) this.#response.write(`${JSON.stringify({ type, object })}\n`)
  }

  fail(code: number, reason: string): void {
    this.send('ERROR', { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code, message: reason })
    this.end()
  }

  /** Makes the connection half-open: it stays, and delivers no further events. */
  silence(): void {
    this.#silent = true
  }

  end(): void {
    this.#response.end()
  }

  resetMidLine(type: string, object: unknown): void {
    const line = JSON.stringify({ type, object })
    this.#response.write(line.slice(0, line.length / 2), () => this.#response.socket?.resetAndDestroy())
  }
}

/** @returns whether the failure has ended the call */
async function refuses(failure: Failure, response: ServerResponse): Promise<boolean> {
  if (failure.kind === 'slow') await failure.until
  if (failure.kind === 'reset') response.socket?.resetAndDestroy()
  if (failure.kind === 'body') sendText(response, failure.status, failure.body)
  if (failure.kind === 'status') sendFailure(response, failure)
  return failure.kind === 'reset' || failure.kind === 'body' || failure.kind === 'status'
}

function sendFailure(
  response: ServerResponse,
  { status, reason = 'Injected', retryAfterSeconds, cause }: Failure & { kind: 'status' },
): void {
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds)
  sendStatus(response, new KubeError('Other', status, 'injected', { reason }), cause)
}

function sendStatus(response: ServerResponse, refusal: KubeError, cause?: string): void {
  const { status: code, message, reason = refusal.code } = refusal
  const details = { causes: [{ reason: cause ?? reason }] }
  sendText(response, code, JSON.stringify({ kind: 'Status', status: 'Failure', reason, message, code, details }))
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': text.startsWith('{') ? 'application/json' : 'text/plain' }).end(text)
}

async function readCall(request: IncomingMessage): Promise<SeenCall> {
  const url = new URL(request.url ?? '/', 'http://fake')
  const method = url.searchParams.get('watch') === 'true' ? 'WATCH' : (request.method ?? '')
  const body = await readBody(request)
  return { method, path: url.pathname, query: url.searchParams, contentType: request.headers['content-type'], body }
}

function bearerOf(request: IncomingMessage): string {
  return request.headers.authorization?.replace(/^Bearer /, '') ?? ''
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function readContinue(token: string): { start: number; version: number } {
  return JSON.parse(Buffer.from(token, 'base64url').toString())
}

function routeOf(path: string): Route | undefined {
  const found = /^\/(?:api|apis\/([^/]+))\/([^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(path)
  if (!found) return undefined
  const [, group = '', version = '', namespace = '', plural = '', name = '', subresource] = found
  return { resource: { group, version, plural, kind: plural, namespaced: namespace !== '' }, ref: { namespace, name }, subresource }
}
