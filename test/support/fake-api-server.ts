import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { FakeObjectStore, FakeRefusal, type FakeObject } from './fake-object-store.ts'
import { FakeWatch } from './fake-watch.ts'

/** A failure of a call. */
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
  /** The connection stays open, without effect and without an answer. */
  | { readonly kind: 'hang' }
  /** The call takes effect and is answered when the promise resolves. */
  | { readonly kind: 'slow'; readonly until: Promise<void> }

/** A failure and the calls that it affects. */
export interface FailureRule {
  /** HTTP method; WATCH for watches; default all. */
  readonly method?: string
  readonly path?: RegExp
  /** Default 1. */
  readonly times?: number
  readonly failure: Failure
}

/** A received call. */
export interface SeenCall {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly contentType: string | undefined
  readonly body: string
}

interface Route {
  readonly collection: string
  readonly namespace: string
  readonly name: string | undefined
  readonly subresource: string | undefined
}

/** A Kubernetes API in memory, only for failures that a real API server does not show on demand. */
export class FakeApiServer {
  readonly store: FakeObjectStore
  readonly calls: SeenCall[] = []
  readonly watches: FakeWatch[] = []
  /** Bearer tokens that are accepted; undefined = no check. */
  tokens: ReadonlySet<string> | undefined
  readonly #server: Server
  #rules: Array<{ rule: FailureRule; left: number }> = []
  #watchWaiters: Array<{ index: number; resolve: (watch: FakeWatch) => void }> = []

  private constructor(store: FakeObjectStore) {
    this.store = store
    this.#server = createServer((request, response) => void this.#handle(request, response))
  }

  /**
   * @param port 0 = a free one
   * @param store the store of a stopped server, to start that server again
   */
  static async start(port = 0, store = new FakeObjectStore()): Promise<FakeApiServer> {
    const fake = new FakeApiServer(store)
    fake.#server.listen(port, '127.0.0.1')
    await once(fake.#server, 'listening')
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

  /** Drops all rules. */
  heal(): void {
    this.#rules = []
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
      if (this.tokens && !this.tokens.has(bearerOf(request))) throw new FakeRefusal(401, 'Unauthorized')
      this.#serve(call, response, failure)
    } catch (error) {
      if (!(error instanceof FakeRefusal)) throw error
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

  #serve(call: SeenCall, response: ServerResponse, failure: Failure | undefined): void {
    const route = routeOf(call.path)
    if (!route) return sendText(response, 404, '404 page not found')
    if (call.method === 'WATCH') return this.#openWatch(call, route, response)
    const answer = this.#answer(call, route)
    const text = JSON.stringify(answer)
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

  #answer(call: SeenCall, { collection, namespace, name, subresource }: Route): unknown {
    if (name === undefined) {
      return call.method === 'POST'
        ? this.store.create(collection, namespace, JSON.parse(call.body))
        : this.#list(call, collection, namespace)
    }
    if (call.method === 'GET') return this.store.get(collection, namespace, name)
    if (call.method === 'PUT') return this.store.update(collection, namespace, name, JSON.parse(call.body))
    if (call.method === 'DELETE') return this.store.remove(collection, namespace, name, JSON.parse(call.body || '{}').preconditions)
    if (call.contentType === 'application/json-patch+json') return this.store.patch(collection, namespace, name, JSON.parse(call.body))
    if (call.contentType === 'application/apply-patch+yaml' && subresource === 'status') {
      return this.store.applyStatus(collection, namespace, name, JSON.parse(call.body))
    }
    throw new FakeRefusal(415, 'UnsupportedMediaType')
  }

  #list(call: SeenCall, collection: string, namespace: string): unknown {
    const token = call.query.get('continue')
    const { start, version } = token === null ? { start: 0, version: this.store.version } : readContinue(token)
    this.store.changesAfter(version) // throws the refusal 410 if the version was compacted
    if (Number(call.query.get('resourceVersion')) > this.store.version) throw new FakeRefusal(504, 'ResourceVersionTooLarge')
    const objects = this.store.list(collection, namespace).filter((object) => selected(object, call.query.get('labelSelector')))
    const limit = Number(call.query.get('limit') ?? Number.POSITIVE_INFINITY)
    const more = start + limit < objects.length
    const next = more ? { continue: Buffer.from(JSON.stringify({ version, start: start + limit })).toString('base64url') } : {}
    const items = objects.slice(start, start + limit).map(({ kind: _kind, apiVersion: _apiVersion, ...object }) => object) // as for built-in kinds
    return { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: String(version), ...next }, items }
  }

  #openWatch(call: SeenCall, { collection, namespace }: Route, response: ServerResponse): void {
    const version = Number(call.query.get('resourceVersion') ?? 0)
    const missed = this.store.changesAfter(version)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const watch = new FakeWatch(response, { collection, namespace, version, query: call.query })
    for (const change of missed) watch.change(change)
    const stop = this.store.onChange((change) => watch.change(change))
    void watch.closed.then(stop)
    this.watches.push(watch)
    this.#watchWaiters = this.#watchWaiters.filter(({ index, resolve }) => {
      const open = this.watches[index]
      if (open) resolve(open)
      return !open
    })
  }
}

/** @returns whether the failure has ended the call */
async function refuses(failure: Failure, response: ServerResponse): Promise<boolean> {
  if (failure.kind === 'slow') await failure.until
  if (failure.kind === 'reset') response.socket?.resetAndDestroy()
  if (failure.kind === 'body') sendText(response, failure.status, failure.body)
  if (failure.kind === 'status') sendFailure(response, failure)
  return failure.kind === 'reset' || failure.kind === 'body' || failure.kind === 'status' || failure.kind === 'hang'
}

function sendFailure(response: ServerResponse, failure: Failure & { kind: 'status' }): void {
  if (failure.retryAfterSeconds !== undefined) response.setHeader('retry-after', failure.retryAfterSeconds)
  sendStatus(response, new FakeRefusal(failure.status, failure.reason ?? 'Injected'), failure.cause)
}

function sendStatus(response: ServerResponse, refusal: FakeRefusal, cause = refusal.reason): void {
  const { status: code, reason, message } = refusal
  sendText(
    response,
    code,
    JSON.stringify({ kind: 'Status', status: 'Failure', reason, message, code, details: { causes: [{ reason: cause }] } }),
  )
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
  const found = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(path)
  if (!found?.[2]) return undefined
  const [, namespace = '', collection, name, subresource] = found
  return { collection, namespace, name, subresource }
}

function selected(object: FakeObject, selector: string | null): boolean {
  const terms = (selector ?? '').split(',').filter(Boolean)
  return terms.every((term) => {
    const [key = '', value] = term.split('=')
    return object.metadata.labels?.[key] === value
  })
}
