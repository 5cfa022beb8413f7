/**
 * Connections to Redis for both programs: they fail fast, never queue, never resend, and reconnect for ever. Every failure becomes a line
 * with its remedy.
 */
import { readFileSync } from 'node:fs'
import { Redis, type RedisOptions } from 'ioredis'
import { Misconfigured } from './lifecycle.ts'

/** Address and user of Redis. */
export interface RedisSettings {
  /** `redis://` or `rediss://`, checked by the config schema. */
  readonly url: string
  /** Both override the values in the URL. */
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** File with the certificates of a private CA (PEM), for `rediss://`. */
  readonly caFile?: string | undefined
}

/** A command of Redis failed. The message names the reason and the remedy, and never a secret. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

const CONNECT_TIMEOUT_MS = 1_000
const LONGEST_RECONNECT_DELAY_MS = 1_000
const RECONNECT_STEP_MS = 50
/** When an answer is late by this much beyond the time-out of its command, the connection counts as dead (a stopped host, a lost route). */
const SOCKET_GRACE_MS = 1_000

/** One connection: a client that fails fast, and functions around it. */
export class RedisConnection {
  readonly client: Redis
  readonly #place: RedisPlace
  #lastError: Error | undefined

  /**
   * Connects at once and reconnects for ever. It throws nothing while Redis does not answer.
   * @param name shown by CLIENT LIST
   * @param timeouts.commandMs of a command; above the wait of a blocking read
   * @throws Misconfigured when the CA file cannot be read
   */
  constructor(settings: RedisSettings, name: string, timeouts: { readonly commandMs: number }) {
    const options = connectionOptions(settings, name, timeouts)
    const where = `${options.host ?? ''}:${options.port ?? ''}`
    this.#place = { where, user: options.username ?? 'default', credentials: credentialsIn(settings) }
    this.client = new Redis(options)
    this.client.on('error', (error: Error) => (this.#lastError = error))
    this.client.on('ready', () => (this.#lastError = undefined))
  }

  /**
   * Runs commands when the connection is ready.
   * @param waitMs longest wait for the connection. A failed attempt to connect ends the wait early
   * @throws StoreUnavailable for every failure
   */
  async run<T>(commands: (client: Redis) => Promise<T>, waitMs: number = CONNECT_TIMEOUT_MS): Promise<T> {
    try {
      await this.#ready(waitMs)
      return await commands(this.client)
    } catch (error) {
      if (error instanceof Misconfigured || error instanceof StoreUnavailable) throw error
      throw this.#unavailable(error)
    }
  }

  /** Describes the failure of a command and its remedy in one line. */
  errorLine(error: Error): string {
    return this.#unavailable(error).message
  }

  /** Whether a command can be sent now. */
  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** Closes the connection. Running commands reject. */
  close(): void {
    this.client.disconnect()
  }

  async #ready(waitMs: number): Promise<void> {
    if (this.isReady) return
    if (this.client.status === 'end') throw new Error('Connection is closed.') // this process has closed it, so it does not come back
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, waitMs)
    const events = ['ready', 'error', 'end'] as const
    for (const event of events) this.client.once(event, resolve)
    await promise
    clearTimeout(timer)
    for (const event of events) this.client.off(event, resolve)
    if (!this.isReady) throw this.#lastError ?? new Error('connect ETIMEDOUT')
  }

  /**
   * Chooses the reason of a failure. The reply to a refused command says more than the state of the connection; the error of an unsent
   * command says less.
   */
  #unavailable(error: unknown): StoreUnavailable {
    const own = error instanceof Error ? error : new Error(String(error))
    const reason = /isn't writeable|Connection is closed|max retries per request/.test(own.message) ? (this.#lastError ?? own) : own
    return new StoreUnavailable(storeErrorLine(reason, this.#place))
  }
}

type LegacyOptions = RedisOptions & { replyMapping: 'legacy' }

/** Whether a setting is a URL of Redis: scheme, host, and a user and password that can be decoded. */
export function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  const isPlace = (url.protocol === 'redis:' || url.protocol === 'rediss:') && url.hostname !== '' && /^(\/\d*)?$/.test(url.pathname)
  return isPlace && isDecodable(url.username) && isDecodable(url.password)
}

/** Whether a text can be decoded. `URL` accepts a bare `%`. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Options of ioredis: host, port and user, and the options to fail fast. A URL alone could not carry the latter. */
function connectionOptions(settings: RedisSettings, name: string, { commandMs }: { readonly commandMs: number }): LegacyOptions {
  const url = new URL(settings.url)
  const username = settings.username ?? decodeURIComponent(url.username)
  const password = settings.password ?? decodeURIComponent(url.password)
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 6379),
    db: Number(url.pathname.slice(1) || 0),
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    ...(url.protocol === 'rediss:' ? { tls: settings.caFile ? { ca: readCa(settings.caFile) } : {} } : {}),
    connectionName: name,
    protocol: 2, // the same shape of replies on every server
    replyMapping: 'legacy',
    disableClientInfo: true, // unknown to Redis 7.0
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false, // a write must not run twice
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: commandMs,
    socketTimeout: commandMs + SOCKET_GRACE_MS,
    retryStrategy: (attempt) => Math.min(attempt * RECONNECT_STEP_MS, LONGEST_RECONNECT_DELAY_MS),
  }
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Misconfigured(`REDIS_CA_FILE: ${file} cannot be read; mount the CA certificates of Redis there or unset it`, { cause: error })
  }
}

/** The settings that hold the user and the password. */
function credentialsIn({ url, username, password }: RedisSettings): string {
  const isInUrl = username === undefined && password === undefined && new URL(url).password !== ''
  return isInUrl ? 'the user and the password in REDIS_URL' : 'REDIS_USERNAME and REDIS_PASSWORD'
}

/** A connection as messages name it. */
interface RedisPlace {
  /** Host and port. */
  readonly where: string
  readonly user: string
  /** The settings that hold user and password. */
  readonly credentials: string
}

interface Remedy {
  readonly match: RegExp
  readonly line: (place: RedisPlace, reason: string) => string
}

/** First match wins. The reasons are replies of the server and our own words; none holds a value that we sent. */
const REMEDIES: readonly Remedy[] = [
  {
    match: /WRONGPASS|invalid username-password|NOAUTH|without any password|AUTH failed/i,
    line: ({ where, user, credentials }) => `Redis at ${where} refuses the credentials of user "${user}"; correct ${credentials}`,
  },
  {
    match: /Unknown RESP type|Protocol error/i,
    line: ({ where }) => `the server at ${where} is not Redis; correct host and port in REDIS_URL`,
  },
  {
    match: /NOPERM|no permission/i,
    line: ({ where, user }, reason) =>
      `Redis at ${where} does not let user "${user}" do this (${reason}); give that user the ACL rules of gateway/README.md`,
  },
  {
    match: /CERT|certificate|wrong version number|packet length|ALTNAME|self.signed/i,
    line: ({ where }, reason) =>
      `Redis at ${where}: no TLS session (${reason}); check redis:// or rediss:// in REDIS_URL and the CA in REDIS_CA_FILE`,
  },
  {
    match: /Function not found/,
    line: ({ where }) =>
      `Redis at ${where} lacks the functions of Headgate; check that the operator runs and uses the same Redis and REDIS_KEY_PREFIX: it loads them`,
  },
  {
    match: /unknown command/i,
    line: ({ where }, reason) => `Redis at ${where} is too old (${reason}); use Redis 7.0 or newer, or Valkey`,
  },
  { match: /LOADING/, line: ({ where }) => `Redis at ${where} is loading its data; wait` },
  { match: /READONLY/, line: ({ where }) => `Redis at ${where} is a read-only replica; point REDIS_URL to the primary` },
  { match: /OOM/, line: ({ where }) => `Redis at ${where} is out of memory; raise its maxmemory` },
  {
    match: /\b(MOVED|ASK|TRYAGAIN|CROSSSLOT|CLUSTERDOWN)\b/,
    line: ({ where }, reason) => `Redis at ${where} is a cluster (${reason}); point REDIS_URL to a single Redis or its primary`,
  },
  {
    match: /ENOTFOUND|EAI_AGAIN/,
    line: ({ where }, reason) =>
      `Redis at ${where}: its name does not resolve (${reason}); correct REDIS_URL or wait until its Service exists`,
  },
]

/** Our texts for errors of the client library and the operating system. */
const REASONS: ReadonlyArray<readonly [match: RegExp, words: string]> = [
  [/ECONNREFUSED/, 'connection refused: nothing listens there'],
  [/EHOSTUNREACH|ENETUNREACH/, 'there is no route to it'],
  [/ETIMEDOUT|timed out|Socket timeout/i, 'no answer in time'],
  [/ECONNRESET|EPIPE|Connection is closed|isn't writeable|max retries per request/, 'the connection was lost'],
  [/ENOTFOUND/, 'there is no such name'],
  [/EAI_AGAIN/, 'the name server does not answer'],
  [/wrong version number|packet length/i, 'the server speaks no TLS'],
  [/ALTNAME/, 'its certificate is for another name'],
  [/CERT_HAS_EXPIRED|certificate has expired/i, 'its certificate has expired'],
  [/self.signed|UNABLE_TO|unable to/i, 'its certificate is signed by an authority that is not trusted'],
]

/** Describes a failure of Redis and its remedy. */
function storeErrorLine(error: Error, place: RedisPlace): string {
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code} ` : ''
  const text = hideArguments(code + error.message).trim()
  const reason = REASONS.find(([match]) => match.test(text))?.[1] ?? text
  const remedy = REMEDIES.find(({ match }) => match.test(text))
  if (remedy) return remedy.line(place, reason)
  return `Redis at ${place.where} does not answer (${reason}); check that it runs and that this process may reach it`
}

/** Removes quoted arguments from an error: some servers quote them, and they may contain a password. */
function hideArguments(text: string): string {
  return text.replace(/,? with args beginning with:.*/s, '').slice(0, 200)
}

/**
 * Refuses a Redis that evicts data when its memory is full: an evicted key would answer 401. The policy comes from INFO, because managed
 * servers forbid CONFIG. A server that does not report a policy is accepted.
 * @throws Misconfigured for a policy other than noeviction; StoreUnavailable when Redis does not answer
 */
export async function refuseEviction(redis: Pick<Redis, 'info'>): Promise<void> {
  const error = await evictionError(redis)
  if (error !== undefined) throw new Misconfigured(error)
}

/**
 * Checks the eviction policy.
 * @returns a line with the policy and the remedy if Redis would evict data
 * @throws Error when Redis does not answer
 */
export async function evictionError(redis: Pick<Redis, 'info'>): Promise<string | undefined> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1] ?? 'noeviction'
  if (policy === 'noeviction') return undefined
  return `REDIS_URL: this Redis evicts data when its memory is full (maxmemory-policy ${policy}); set "maxmemory-policy noeviction" there`
}
