/** A dashboard over the object store, with a SQLite file and mails in memory, and browsers without scripts: clients that keep cookies. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Account } from '#api/account.ts'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import type { Informer, KubePort } from '#kube/port.ts'
import { type Cancel, type Clock, systemClock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import { createDashboard, type Dashboard, type DashboardDeps, type MoneySettings } from '../../dashboard/server/dashboard.ts'
import type { DatabasePlace } from '../../dashboard/server/identity/database.ts'
import type { ProviderSettings } from '../../dashboard/server/identity/providers.ts'
import type { Letter, MailTransport } from '../../dashboard/server/mail/transport.ts'
import { renderMail } from '../../dashboard/server/mail/templates/mails.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { QuickDatabase } from './quick-database.ts'

export const SECRET = 'a secret of the tests that is long enough to be taken'
const CHEAP = { memoryKiB: 32, passes: 1 }
/** Connections that a test may open at the same moment. */
const CONNECTS = 2_000
export const PASSWORD = 'four quiet herons wade'

export interface DashboardWorldOptions {
  /** Folder for the database and the built pages. */
  readonly folder: string
  /** @param closeWith closes a server with the world */
  readonly providers?: (
    origin: string,
    closeWith: (server: Server) => void,
  ) => readonly ProviderSettings[] | Promise<readonly ProviderSettings[]>
  readonly hasPasswords?: boolean
  readonly database?: DatabasePlace
  readonly store?: ObjectStore
  /** Between the dashboard and the store, for failures. */
  readonly kube?: (store: ObjectStore) => KubePort
  readonly trustedProxies?: readonly string[]
  readonly transport?: MailTransport
  /** Origin that the dashboard is told, as behind a proxy that ends TLS. Requests still go to the address that the dashboard listens at. */
  readonly publicOrigin?: string
  /** Wraps the cache of Accounts. */
  readonly informer?: (store: ObjectStore) => Informer<Account>
  /** Other caches than those of the store, made for each replica. */
  readonly caches?: () => Partial<DashboardDeps['caches']>
  readonly outage?: { readonly sinceMs: number | undefined }
  /** Hashes as in production. Cheap ones save a test most of its time. */
  readonly hasRealHashes?: boolean
  /** Where usage and ledger are asked for; absent: nothing answers there. */
  readonly money?: Partial<MoneySettings>
  /** Another secret than that of the tests. */
  readonly secret?: string
}

const DEFAULTS = {
  providers: () => [],
  hasPasswords: true,
  hasRealHashes: false,
  kube: (store: ObjectStore): KubePort => store,
  informer: (store: ObjectStore): Informer<Account> => store.informer(accounts),
  caches: () => ({}),
  trustedProxies: ['loopback'],
  secret: SECRET,
} satisfies Partial<DashboardWorldOptions>

/** The machine's clock, moved by a test. A move runs the timers that it passes. The identity library has its own clock, which stays. */
export class MovedClock implements Clock {
  #movedMs = 0
  readonly #timers = new Set<{ readonly dueMs: number; readonly fire: () => void }>()
  now = (): number => systemClock.now() + this.#movedMs
  monotonic = (): number => systemClock.monotonic()

  after(delayMs: number, callback: () => void): Cancel {
    const end = (): void => {
      cancel()
      this.#timers.delete(timer)
    }
    const fire = (): void => {
      end()
      callback()
    }
    const timer = { dueMs: this.now() + delayMs, fire }
    const cancel = systemClock.after(delayMs, fire)
    this.#timers.add(timer)
    return end
  }

  move(ms: number): void {
    this.#movedMs += ms
    for (const { dueMs, fire } of [...this.#timers]) if (dueMs <= this.now()) fire()
  }
}

/** Mails in memory, rendered as they would be sent. */
export class MailLog implements MailTransport {
  readonly mails: { readonly to: string; readonly name: string; readonly subject: string; readonly text: string }[] = []
  origin = ''
  #onMail: () => void = () => undefined

  async send({ to, name, parameters }: Letter): Promise<void> {
    const { subject, text } = renderMail({ name: 'Headgate', url: this.origin }, name, parameters)
    this.mails.push({ to, name, subject, text })
    this.#onMail()
  }

  close(): void {
    this.#onMail()
  }

  /** Waits for the mail number `nth` of a kind to an address. */
  async wait(to: string, name: string, nth = 1): Promise<{ readonly text: string; readonly link: string }> {
    for (;;) {
      const found = this.of(to, name)[nth - 1]
      if (found) return { text: found.text, link: /https?:\/\/\S+/.exec(found.text)?.[0] ?? '' }
      await new Promise<void>((resolve) => (this.#onMail = resolve))
    }
  }

  of(to: string, name: string): readonly { readonly text: string }[] {
    return this.mails.filter((mail) => mail.to === to && mail.name === name)
  }
}

export class DashboardWorld implements AsyncDisposable {
  readonly origin: string
  /** Where the dashboard listens. */
  readonly url: string
  readonly store: ObjectStore
  readonly mails = new MailLog()
  readonly clock = new MovedClock()
  /** Every line of the log, at level debug. */
  readonly lines: string[] = []
  readonly #server: Server
  readonly #others: Server[] = []
  #options: DashboardWorldOptions
  #replicas: readonly Dashboard[] = []
  #browsers = 0
  #requests = 0

  private constructor(server: Server, options: DashboardWorldOptions) {
    this.url = `http://localhost:${(server.address() as AddressInfo).port}`
    this.origin = options.publicOrigin ?? this.url
    this.mails.origin = this.origin
    this.store = options.store ?? new ObjectStore()
    this.#server = server
    this.#options = options
    server.on('request', (request, response) => {
      const { length } = this.#replicas
      this.#requests += 1
      this.#replicas[this.#requests % length]?.app(request, response)
    })
  }

  static async open(options: DashboardWorldOptions): Promise<DashboardWorld> {
    const world = await DashboardWorld.prepare(options)
    await world.start()
    return world
  }

  /** A world whose dashboard is not started yet. */
  static async prepare(options: DashboardWorldOptions): Promise<DashboardWorld> {
    const server = createServer()
    await once(server.listen({ port: 0, host: '127.0.0.1', backlog: CONNECTS }), 'listening')
    return new DashboardWorld(server, options)
  }

  /** The first replica. */
  get dashboard(): Dashboard {
    const [dashboard] = this.#replicas
    if (dashboard === undefined) throw new Error('the dashboard is not open')
    return dashboard
  }

  /** Starts a dashboard at the same origin, over the same store and, unless `options` name another one, the same database. */
  async start(options: Partial<DashboardWorldOptions> = {}): Promise<void> {
    this.#options = { ...this.#options, ...options }
    const dashboard = await this.#create()
    this.#replicas = [dashboard]
    dashboard.start()
  }

  /** Starts several at once. The requests of a browser go to each in turn, as behind a Service. */
  async startReplicas(count: number): Promise<void> {
    this.#replicas = await Promise.all(Array.from({ length: count }, () => this.#create()))
    for (const replica of this.#replicas) replica.start()
  }

  /** Lets all replicas look for news of accounts at the same moment. One that finds the file locked by another looks again later. */
  async notifyAll(): Promise<void> {
    await Promise.allSettled(this.#replicas.map((replica) => replica.notify()))
  }

  async stop(): Promise<void> {
    const replicas = this.#replicas
    this.#replicas = []
    await Promise.all(replicas.map((replica) => replica.stop()))
  }

  async #create(): Promise<Dashboard> {
    const { store, origin, lines, clock } = this
    const options = { ...DEFAULTS, ...this.#options }
    return await createDashboard({
      kube: options.kube(store),
      caches: {
        accounts: options.informer(store),
        apiKeys: store.informer(apiKeys),
        plans: store.informer(plans),
        models: store.informer(servedModels),
        credits: store.informer(credits),
        ...options.caches(),
      },
      ...(options.outage && { outage: options.outage }),
      auth: {
        origin,
        secret: options.secret,
        providers: await options.providers(origin, (server) => this.#others.push(server)),
        hasPasswords: options.hasPasswords,
        ...(options.hasRealHashes ? {} : { hashCost: CHEAP }),
      },
      database: options.database ?? { file: join(options.folder, 'dashboard.db'), open: (path) => new QuickDatabase(path) },
      newAccounts: { defaultPlan: 'default', billing: 'Prepaid', keysNamespace: 'headgate-accounts' },
      money: { url: 'http://127.0.0.1:9', currency: 'EUR', lowBalance: 5_000_000, payments: { provider: 'manual' }, ...options.money },
      apiURL: 'http://api.example.com',
      web: webFiles(options.folder),
      transport: options.transport ?? this.mails,
      trustedProxies: options.trustedProxies,
      clock,
      log: createLog('dashboard', 'debug', { write: (line) => void lines.push(line) }).log,
    })
  }

  /** A browser at an address of its own, unless the headers say otherwise: limits count by address. */
  browser(headers?: Readonly<Record<string, string>>): FormBrowser {
    this.#browsers += 1
    return new FormBrowser(this.origin, headers ?? { 'x-forwarded-for': `198.51.${this.#browsers >> 8}.${this.#browsers & 255}` })
  }

  /** Signs up and verifies. @returns the signed-in browser */
  async person(email: string, password = PASSWORD): Promise<FormBrowser> {
    const browser = this.browser()
    const { status } = await browser.post('/sign-up', { email, password })
    if (status !== 303) throw new Error(`sign-up was answered ${status}`)
    const { link } = await this.mails.wait(email, 'verify')
    await browser.post('/verify', { token: tokenOf(link) })
    return browser
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    for (const server of [this.#server, ...this.#others]) {
      server.close()
      server.closeAllConnections()
    }
  }
}

export function tokenOf(link: string): string {
  return new URL(link).searchParams.get('token') ?? ''
}

/** Follows no redirect, keeps cookies, and sends the origin as browsers do. */
export class FormBrowser {
  readonly origin: string
  readonly cookies = new Map<string, string>()
  readonly #headers: Readonly<Record<string, string>>

  constructor(origin: string, headers: Readonly<Record<string, string>> = {}) {
    this.origin = origin
    this.#headers = headers
  }

  async get(path: string): Promise<Visit> {
    return await this.#visit(path, {})
  }

  /** A form. */
  async post(path: string, fields: Readonly<Record<string, string>>): Promise<Visit> {
    return await this.#visit(path, { method: 'POST', headers: { origin: this.origin }, body: new URLSearchParams(fields) })
  }

  /** JSON, as the app's scripts send it. */
  async call(method: string, path: string, body?: object): Promise<Visit> {
    const headers = { origin: this.origin, ...(body ? { 'content-type': 'application/json' } : {}) }
    return await this.#visit(path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
  }

  async #visit(path: string, { headers, ...init }: RequestInit): Promise<Visit> {
    const url = new URL(path, this.origin)
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: { ...this.#headers, ...(cookie ? { cookie } : {}), ...(headers as object) },
    })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    return new Visit(response, await response.text())
  }

  #keep(line: string): void {
    const [pair = ''] = line.split(';')
    const name = pair.slice(0, pair.indexOf('='))
    const value = pair.slice(name.length + 1)
    if (value === '' || /max-age=0/i.test(line)) this.cookies.delete(name)
    else this.cookies.set(name, value)
  }
}

export class Visit {
  readonly status: number
  readonly headers: Headers
  readonly text: string

  constructor({ status, headers }: Pick<Response, 'status' | 'headers'>, text: string) {
    this.status = status
    this.headers = headers
    this.text = text
  }

  get location(): string {
    return this.headers.get('location') ?? ''
  }

  get heading(): string {
    return /<h1[^>]*>([^<]*)</.exec(this.text)?.[1] ?? ''
  }

  // eslint-disable-next-line typescript/no-explicit-any -- tests read what they expect
  json(): any {
    return JSON.parse(this.text)
  }
}

function webFiles(folder: string): { folder: string; app: string; styles: string[]; scripts: string[] } {
  const web = join(folder, 'web')
  mkdirSync(join(web, 'assets'), { recursive: true })
  writeFileSync(join(web, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
  return { folder: web, app: '<!doctype html><title>The app</title>', styles: ['/assets/door.css'], scripts: ['/assets/door.js'] }
}
