import { Agent, request } from 'undici'
import type { Clock } from '#platform/clock.ts'
import type { KubeAccess, KubeCredentials } from './kube-credentials.ts'

/** One HTTP call, as the raw client makes it. */
export interface KubeCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path and query, from the root of the API. */
  readonly path: string
  /** JSON. */
  readonly body?: string
  /** Default application/json. */
  readonly contentType?: string
  /** Default application/json. */
  readonly accept?: string
  /** Sent over separate connections, independent of other calls: for the LeaderLease. */
  readonly isDedicated?: boolean
}

/** A whole answer. Every HTTP status is one. */
export interface KubeAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** An answer whose body is still being received. */
export interface KubeStream extends Omit<KubeAnswer, 'text'> {
  /** Ends with an error when the connection breaks or the signal of the call aborts. */
  readonly body: AsyncIterable<Uint8Array>
}

export interface TransportOptions {
  readonly credentials: KubeCredentials
  readonly clock: Clock
  /** Called after each call; `code` is the HTTP status or `<error>`. For `rest_client_requests_total`. */
  readonly onAnswer?: (method: string, code: string, host: string) => void
}

/** Maximum number of connections for calls. The callers' own limits are lower. */
const MAX_CONNECTIONS = 64
/** Maximum number of connections for dedicated calls. */
const DEDICATED_CONNECTIONS = 2
const CALL_DEADLINE_MS = 30_000
const HEADERS_TIMEOUT_MS = 30_000
/** Credential files are read again at most this often without a failure, and at once after a failure. */
const CREDENTIALS_FRESH_MS = 10_000
/** A 401 reloads the kubeconfig at most this often: a plugin may be slow or ask the user. */
const RELOAD_EVERY_MS = 5_000

interface Agents {
  readonly identity: string
  readonly pools: Readonly<Record<'calls' | 'dedicated' | 'watches', Agent>>
}

/**
 * HTTP/1.1 to the API server over three shared connection pools: for calls, for dedicated calls and for watches (no body timeout). The
 * dispatcher of client-node is not used, since it opens a pool per request. Pools are replaced when CA or client certificate change on disk.
 */
export class Transport {
  readonly #options: TransportOptions
  #agents: Agents | undefined
  #access: Promise<KubeAccess> | undefined
  #accessReadAtMs = 0
  #reloadedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: TransportOptions) {
    this.#options = options
  }

  /** Ends within 30 s, by an answer or a network error. */
  async call(call: KubeCall): Promise<KubeAnswer> {
    const startedAtMs = this.#options.clock.monotonic()
    const first = await this.#send(call)
    // after a 401 the server has done nothing, so the same call may be sent again with reloaded credentials
    return first.status === 401 && this.#reloadedSince(startedAtMs) ? this.#send(call) : first
  }

  /** A watch: no time limit once the headers are in (30 s). */
  async open(path: string, signal: AbortSignal): Promise<KubeStream> {
    return this.#observed('WATCH', async (access) => {
      const headers = { ...access.headers, accept: 'application/json' }
      const deadline = new AbortController() // for a server that accepts and sends nothing: undici's headersTimeout starts only after the connect
      const cancel = this.#options.clock.after(CALL_DEADLINE_MS, () => deadline.abort(new Error('no answer within 30 s')))
      try {
        const answer = await request(access.server + path, {
          dispatcher: this.#poolsFor(access).watches,
          headers,
          signal: AbortSignal.any([signal, deadline.signal]),
        })
        if (answer.statusCode === 401) this.#reloadedSince(this.#options.clock.monotonic())
        return { status: answer.statusCode, headers: answer.headers, body: answer.body }
      } finally {
        cancel()
      }
    })
  }

  /** Ends all connections, running calls included. */
  async close(): Promise<void> {
    const pools = Object.values(this.#agents?.pools ?? {})
    this.#agents = undefined
    await Promise.all(pools.map((pool) => pool.destroy()))
  }

  #send(call: KubeCall): Promise<KubeAnswer> {
    return this.#observed(call.method, async (access) => {
      const pools = this.#poolsFor(access)
      const answer = await request(access.server + call.path, {
        dispatcher: call.isDedicated ? pools.dedicated : pools.calls,
        method: call.method,
        headers: {
          ...access.headers,
          accept: call.accept ?? 'application/json',
          ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
        },
        ...(call.body === undefined ? {} : { body: call.body }),
        signal: AbortSignal.timeout(CALL_DEADLINE_MS),
      })
      return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() }
    })
  }

  async #observed<T extends { readonly status: number }>(method: string, send: (access: KubeAccess) => Promise<T>): Promise<T> {
    let host = ''
    try {
      const access = await this.#currentAccess()
      host = new URL(access.server).host
      const answer = await send(access)
      this.#options.onAnswer?.(method, String(answer.status), host)
      return answer
    } catch (error) {
      this.#access = undefined // the CA or a certificate may have been replaced: read them again next time
      this.#options.onAnswer?.(method, '<error>', host)
      throw error
    }
  }

  #currentAccess(): Promise<KubeAccess> {
    const now = this.#options.clock.monotonic()
    if (!this.#access || now - this.#accessReadAtMs > CREDENTIALS_FRESH_MS) {
      this.#accessReadAtMs = now
      this.#access = this.#options.credentials.read() // shared by all calls until the read ends
    }
    return this.#access
  }

  /** Reloads the credentials unless they were reloaded just before. @returns whether they were reloaded after `sinceMs` */
  #reloadedSince(sinceMs: number): boolean {
    const now = this.#options.clock.monotonic()
    if (now - this.#reloadedAtMs < RELOAD_EVERY_MS) return this.#reloadedAtMs >= sinceMs
    this.#reloadedAtMs = now
    this.#access = undefined
    this.#options.credentials.reload()
    return true
  }

  #poolsFor(access: KubeAccess): Agents['pools'] {
    const identity = JSON.stringify(access.tls)
    if (this.#agents?.identity === identity) return this.#agents.pools
    // running calls of the old pools finish, and open watches end at their own timeout; no caller waits for either
    for (const pool of Object.values(this.#agents?.pools ?? {})) pool.close().catch(() => undefined)
    const connect = { ...access.tls, keepAlive: true, keepAliveInitialDelay: 30_000, timeout: 10_000 }
    const common: Agent.Options = { allowH2: false, connect, keepAliveTimeout: 30_000, headersTimeout: HEADERS_TIMEOUT_MS }
    const pools = {
      calls: new Agent({ ...common, connections: MAX_CONNECTIONS, bodyTimeout: CALL_DEADLINE_MS }),
      dedicated: new Agent({ ...common, connections: DEDICATED_CONNECTIONS, bodyTimeout: CALL_DEADLINE_MS }),
      watches: new Agent({ ...common, bodyTimeout: 0 }),
    }
    this.#agents = { identity, pools }
    return pools
  }
}
