/** A dashboard over the object store, with a SQLite file and mails in memory, and browsers without scripts: clients that keep cookies. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Account } from '#api/account.ts'
import { accounts } from '#api/resources.ts'
import type { KubePort } from '#kube/port.ts'
import { type Clock, systemClock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import { createDashboard, type Dashboard } from '../../dashboard/server/dashboard.ts'
import type { AuthSettings } from '../../dashboard/server/identity/auth.ts'
import type { DatabasePlace } from '../../dashboard/server/identity/database.ts'
import type { ProviderSettings } from '../../dashboard/server/identity/providers.ts'
import type { Letter, MailTransport } from '../../dashboard/server/mail/transport.ts'
import { renderMail } from '../../dashboard/server/mail/templates/mails.ts'
import { ObjectStore } from '../../standalone/object-store.ts'

export const SECRET = 'a secret of the tests that is long enough to be taken'
export const PASSWORD = 'four quiet herons wade'

export interface DashboardWorldOptions {
  /** Folder for the database and the built pages. */
  readonly folder: string
  readonly providers?: (origin: string) => readonly ProviderSettings[] | Promise<readonly ProviderSettings[]>
  readonly hasPasswords?: boolean
  readonly database?: DatabasePlace
  readonly store?: ObjectStore
  /** Between the dashboard and the store, for failures. */
  readonly kube?: (store: ObjectStore) => KubePort
  readonly trustedProxies?: readonly string[]
  readonly transport?: MailTransport
  /** Origin that the dashboard is told, as behind a proxy that ends TLS. Requests still go to the address that the dashboard listens at. */
  readonly publicOrigin?: string
}

/** The machine's clock, moved by a test. The identity library has its own clock, which stays. */
export class MovedClock implements Clock {
  #movedMs = 0
  now = (): number => systemClock.now() + this.#movedMs
  monotonic = (): number => systemClock.monotonic()
  after: Clock['after'] = (delayMs, callback) => systemClock.after(delayMs, callback)

  move(ms: number): void {
    this.#movedMs += ms
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
  readonly dashboard: Dashboard
  readonly origin: string
  /** Where the dashboard listens. */
  readonly url: string
  readonly store: ObjectStore
  readonly mails: MailLog
  readonly clock: MovedClock
  /** Every line of the log, at level debug. */
  readonly lines: string[]
  readonly #stop: () => Promise<void>
  #browsers = 0

  private constructor(
    parts: Pick<DashboardWorld, 'dashboard' | 'origin' | 'url' | 'store' | 'mails' | 'clock' | 'lines'> & { stop: () => Promise<void> },
  ) {
    this.dashboard = parts.dashboard
    this.origin = parts.origin
    this.url = parts.url
    this.store = parts.store
    this.mails = parts.mails
    this.clock = parts.clock
    this.lines = parts.lines
    this.#stop = parts.stop
  }

  static async open(options: DashboardWorldOptions): Promise<DashboardWorld> {
    let handle: RequestListener = () => undefined
    const server = createServer((request, response) => handle(request, response))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://localhost:${(server.address() as AddressInfo).port}`
    const origin = options.publicOrigin ?? url
    const store = options.store ?? new ObjectStore()
    const mails = new MailLog()
    mails.origin = origin
    const lines: string[] = []
    const clock = new MovedClock()
    const dashboard = await createDashboard({
      kube: options.kube?.(store) ?? store,
      accounts: store.informer<Account>(accounts),
      auth: await authOf(options, origin),
      database: options.database ?? { file: join(options.folder, 'dashboard.db') },
      newAccounts: { defaultPlan: 'default', billing: 'Prepaid', keysNamespace: 'headgate-accounts' },
      apiURL: 'http://api.example.com',
      web: webFiles(options.folder),
      transport: options.transport ?? mails,
      trustedProxies: options.trustedProxies ?? ['loopback'],
      clock,
      log: createLog('dashboard', 'debug', { write: (line) => void lines.push(line) }).log,
    })
    handle = dashboard.app
    dashboard.start()
    const stop = async (): Promise<void> => {
      await dashboard.stop()
      server.close()
      server.closeAllConnections()
    }
    return new DashboardWorld({ dashboard, origin, url, store, mails, clock, lines, stop })
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
    await this.#stop()
  }
}

async function authOf({ providers, hasPasswords = true }: DashboardWorldOptions, origin: string): Promise<AuthSettings> {
  return { origin, secret: SECRET, providers: (await providers?.(origin)) ?? [], hasPasswords }
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

  constructor({ status, headers }: Response, text: string) {
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
