/** The built pages of the dashboard before a server that answers as a test says, for states that the real server has rarely. */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { build } from 'vite'
import type { Me, Refusal, RefusalCode, Sessions } from '../../dashboard/server/page-data/people.ts'
import { ROOT } from './documents.ts'
import { REFUSAL_STATUS } from '../../dashboard/server/http/refused.ts'
import { FakeKeys } from './fake-keys.ts'
import { FakeMoney } from './fake-money.ts'
import { listening } from './listening.ts'

/** As strict as the real server's. */
const POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }
const PASSWORD = 'the right password'
const CODE = '123456'
export const BACKUP_CODES = ['7k2m-9xqp', 'b4tz-h3wc', 'n8rd-6yjf']

type Manifest = Readonly<Record<string, { readonly file: string; readonly css: readonly string[] }>>

const ME: Me = {
  person: {
    ...{ id: 'p1', name: 'Maya', email: 'maya@x.example', createdAt: '2026-08-04T10:00:00Z', role: 'owner', hasPassword: true },
    twoFactor: { isOn: false },
  },
  account: { state: 'Active', name: 'u-4kq7', plan: 'team', isReady: true },
  installation: { apiURL: 'https://models.x.example', providers: [{ id: 'github', name: 'GitHub' }], hasPasswords: true },
}
const session = (id: string, agent: string): Sessions['sessions'][number] => ({
  ...{ id, agent, isCurrent: id === 's1', address: '203.0.113.24' },
  ...{ createdAt: '2026-11-20T08:00:00Z', lastUsedAt: '2026-11-24T08:00:00Z' },
})

interface Asked {
  /** `GET /api/me`, without its query. */
  readonly route: string
  readonly body: string
  readonly search: URLSearchParams
}

export class FakeDashboard {
  /** `POST /api/confirm {"password":…}`, in order, without the reads. */
  readonly changes: string[] = []
  me: Me = ME
  sessions = [session('s1', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'), session('s2', 'curl/8')]
  /** Refusals by route, `GET /api/me`. */
  refusals: Readonly<Record<string, RefusalCode>> = {}
  /** Whether changes need a fresh proof, until a right one comes. */
  wantsProof = false
  hasSession = true
  readonly keys = new FakeKeys()
  readonly money = new FakeMoney()
  /** Routes whose next answer gets lost on its way: the change is made. */
  readonly lost = new Set<string>()
  /** Pages besides the app, by path. */
  readonly pages: Record<string, string> = { '/sign-in': '<!doctype html><html lang="en"><title>Sign in</title><h1>Sign in</h1></html>' }
  readonly #folder: string
  readonly #server: Server
  origin = ''

  private constructor(folder: string) {
    this.#folder = folder
    this.#server = createServer((request, response) => void this.#serve(request, response))
  }

  /** @param folder where the pages are built */
  static async start(folder: string): Promise<FakeDashboard> {
    await buildPages(folder)
    const fake = new FakeDashboard(folder)
    fake.origin = `http://127.0.0.1:${await listening(fake.#server)}`
    return fake
  }

  /** As at the start, for the next test. */
  reset(): void {
    Object.assign(this, { me: ME, refusals: {}, wantsProof: false, hasSession: true })
    this.changes.length = 0
    this.keys.reset()
    this.money.reset()
    this.lost.clear()
  }

  /** A page before sign-in with this content, styled and scripted as the real ones. */
  door(main: string): string {
    const entry = (JSON.parse(readFileSync(join(this.#folder, '.vite/manifest.json'), 'utf8')) as Manifest)['door.ts']
    if (entry === undefined) throw new Error('the build has no door.ts')
    const { file, css } = entry
    const links = css.map((path) => `<link rel="stylesheet" href="/${path}">`).join('')
    const head = `<title>Door</title>${links}<script type="module" src="/${file}"></script>`
    return `<!doctype html><html lang="en"><head>${head}</head><body><div class="door"><main><h1>Door</h1>${main}</main></div></body></html>`
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const { pathname: path, searchParams } = new URL(request.url ?? '/', this.origin)
    response.setHeader('content-security-policy', POLICY)
    if (path.startsWith('/api/')) return this.#answer(response, { route: `${request.method} ${path}`, body, search: searchParams })
    const type = TYPES[path.split('.').at(-1) ?? '']
    response.setHeader('content-type', type ?? 'text/html')
    const page = (): string | Buffer => this.pages[path] ?? readFileSync(join(this.#folder, 'index.html'))
    response.end(type === undefined ? page() : readFileSync(join(this.#folder, path))) // the browser has taken `..` out of the path
  }

  #answer(response: ServerResponse, asked: Asked): void {
    const { route, body } = asked
    if (!route.startsWith('GET ')) this.changes.push(`${route} ${body}`)
    const code = this.#refusal(route, body)
    const result = code === undefined ? this.#result(asked) : { error: { code, message: `Refused: ${code}.`, requestID: 'req_7' } }
    if (this.lost.delete(route)) return void response.write('{', () => response.destroy()) // a browser would repeat a request without headers
    response.statusCode = typeof result === 'object' && isRefusal(result) ? REFUSAL_STATUS[result.error.code] : 200
    response.setHeader('content-type', typeof result === 'string' ? 'text/csv' : 'application/json')
    response.end(typeof result === 'string' ? result : JSON.stringify(result))
  }

  #refusal(route: string, body: string): RefusalCode | undefined {
    if (!this.hasSession) return 'session-ended'
    const refusal = this.refusals[route]
    if (refusal !== undefined || route.startsWith('GET ')) return refusal
    const isRight = body.includes(PASSWORD) || body.includes(CODE)
    if (route === 'POST /api/confirm' || route === 'POST /api/two-factor/confirm') return isRight ? undefined : 'wrong-credentials'
    return this.wantsProof && route !== 'PATCH /api/me' ? 'confirm' : undefined
  }

  /** @returns text for a file */
  #result({ route, body, search }: Asked): object | string {
    switch (route) {
      case 'PATCH /api/me':
        return (this.me = { ...this.me, person: { ...this.me.person, ...(JSON.parse(body) as { name: string }) } })
      case 'GET /api/me':
        return this.me
      case 'GET /api/providers':
        return { providers: [{ id: 'github', name: 'GitHub', isLinked: true, linkedAt: '2026-08-04T10:00:00Z' }] }
      case 'GET /api/sessions':
        return { sessions: this.sessions }
      case 'POST /api/confirm':
        this.wantsProof = false
        return {}
      case 'POST /api/two-factor/start':
        return { uri: 'otpauth://totp/Headgate:m?secret=JBSWY3DPEHPK3PXP', secret: 'JBSWY3DPEHPK3PXP', backupCodes: BACKUP_CODES }
      case 'POST /api/two-factor/confirm':
        this.me = { ...this.me, person: { ...this.me.person, twoFactor: { isOn: true, backupCodesLeft: 3 } } }
        return {}
      default:
        return this.money.answer(route, search) ?? this.keys.answer(route, body) ?? {}
    }
  }
}

/** As `make web` does: the test runner's own NODE_ENV would build in the development part of React, which no installation has, and which is slow. */
async function buildPages(folder: string): Promise<void> {
  const { NODE_ENV } = process.env
  process.env['NODE_ENV'] = 'production'
  try {
    await build({ configFile: join(ROOT, 'dashboard/web/vite.config.ts'), logLevel: 'error', build: { outDir: folder } })
  } finally {
    if (NODE_ENV === undefined) delete process.env['NODE_ENV']
    else process.env['NODE_ENV'] = NODE_ENV
  }
}

function isRefusal(result: object): result is Refusal {
  return 'error' in result
}
