/** The dashboard as an Express app: security headers, the table of routes, the app's files, and one place for errors. Never listens. */
import { join } from 'node:path'
import { isKubeError } from '#kube/port.ts'
import { messageOf } from '#platform/message-of.ts'
import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'
import helmet from 'helmet'
import { can } from './accounts/members.ts'
import { type Answer, type Client, type Exchange, newRequestID, redirect } from './http/exchange.ts'
import { notFound, Refused } from './http/refused.ts'
import { isDatabaseFailure } from './identity/database-failure.ts'
import { Busy } from './identity/busy.ts'
import { HashQueueFull } from './identity/hash-queue.ts'
import { isFresh } from './identity/proof.ts'
import type { Session } from './identity/sessions.ts'
import type { Refusal } from './page-data/people.ts'
import { errorPage } from './pages/error.ts'
import { formExpiredPage } from './pages/form-expired.ts'
import { notFoundPage } from './pages/not-found.ts'
import { tooManyRequestsPage } from './pages/too-many-requests.ts'
import { ROUTES } from './routes.ts'
import type { MemberRoute, Route, RouteDeps } from './routes/route.ts'
import type { WebFiles } from './web-files.ts'

export interface AppDeps extends RouteDeps {
  readonly web: WebFiles
  readonly trustedProxies: readonly string[]
  /** Further routes, before the answer 404: the mailbox of `make run`. */
  readonly extraRoutes?: readonly Route[]
}

const BODY_LIMIT = '10kb'
const MAX_AGENT = 200
/** Retry-After while the database or the cluster does not answer, s. */
const OUTAGE_RETRY_SECONDS = 10
/** Retry-After while too many passwords are being checked, s. */
const BUSY_RETRY_SECONDS = 5
/** Paths of the single-page app. */
const APP_PATHS = ['/', '/keys', '/keys/:key', '/usage', '/billing', '/billing/plan', '/settings']
const ASSET_MAX_AGE_MS = 365 * 86_400_000

export function createDashboardApp(deps: AppDeps): Express {
  const app = express()
  app.disable('x-powered-by')
  app.set('etag', false)
  app.set('trust proxy', [...deps.trustedProxies])
  app.use(beginExchange(deps), securityHeaders(deps))
  app.use('/assets', express.static(join(deps.web.folder, 'assets'), { immutable: true, maxAge: ASSET_MAX_AGE_MS, fallthrough: false }))
  app.get('/icon.svg', (_request, response) => response.sendFile('icon.svg', { root: deps.web.folder }))
  app.use(noStore, ownOrigin(deps))
  for (const route of [...ROUTES, ...(deps.extraRoutes ?? [])])
    app[methodOf(route)](route.path, bodyOf(route), async (request: Request, response: Response) =>
      answer(deps, route, { request, response }),
    )
  app.get(APP_PATHS, async (request, response) => openApp(deps, request, response))
  app.use(() => {
    throw notFound()
  })
  app.use(answerErrors(deps))
  return app
}

function methodOf({ method }: Route): 'get' | 'post' | 'patch' | 'delete' {
  return method.toLowerCase() as 'get' | 'post' | 'patch' | 'delete'
}

/** Names the request, and counts and logs its end. */
function beginExchange({ log, metrics }: AppDeps): RequestHandler {
  return (request, response, next) => {
    const id = newRequestID()
    const started = performance.now()
    response.locals['requestID'] = id
    response.setHeader('x-request-id', id)
    response.on('finish', () => {
      const route = typeof request.route?.path === 'string' ? request.route.path : 'none' // a path may have a token in its query
      const seconds = (performance.now() - started) / 1_000
      metrics.answered(request.method, route, response.statusCode, seconds)
      log.debug({ request: id, method: request.method, route, status: response.statusCode }, 'answered')
    })
    next()
  }
}

function securityHeaders({ identity }: AppDeps): RequestHandler {
  const isSecure = identity.settings.origin.startsWith('https:')
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        baseUri: ["'none'"],
        objectSrc: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
    },
    frameguard: { action: 'deny' },
    referrerPolicy: { policy: 'same-origin' }, // without a referrer, browsers would send `Origin: null` with our own forms
    strictTransportSecurity: isSecure ? { maxAge: 365 * 86_400, includeSubDomains: false } : false,
    crossOriginOpenerPolicy: { policy: 'same-origin' },
  })
}

const noStore: RequestHandler = (_request, response, next) => {
  response.setHeader('cache-control', 'no-store')
  next()
}

/** Every change must come from a page of this origin: browsers name the origin with each POST, and other sites cannot forge it. */
function ownOrigin({ identity, site }: AppDeps): RequestHandler {
  return (request, response, next) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (isRead || request.get('origin') === identity.settings.origin) return next()
    if (isApi(request)) return next(new Refused('wrong-origin', 'The request does not come from a page of the dashboard.'))
    response
      .status(403)
      .type('html')
      .send(String(formExpiredPage(site, { goOn: '/' })))
  }
}

function isApi({ path }: Request): boolean {
  return path.startsWith('/api/')
}

/** The one kind of body that a route takes. */
function bodyOf({ method, path }: Route): RequestHandler[] {
  if (method === 'GET' || method === 'DELETE') return []
  const type = path.startsWith('/api/') ? 'application/json' : 'application/x-www-form-urlencoded'
  const onlyThis: RequestHandler = (request, response, next) => {
    if (request.is(type) === type) return next()
    response.sendStatus(415)
  }
  const parser =
    type === 'application/json'
      ? express.json({ limit: BODY_LIMIT, strict: true })
      : express.urlencoded({ limit: BODY_LIMIT, extended: false })
  return [onlyThis, parser]
}

async function answer(
  deps: AppDeps,
  route: Route,
  { request, response }: { readonly request: Request; readonly response: Response },
): Promise<void> {
  const exchange = exchangeOf(request)
  if (route.needsPasswords && !deps.identity.settings.hasPasswords) throw notFound()
  if (route.access === 'anyone') return send(response, await route.handler(deps, exchange))
  const session = await sessionFor(deps, route, exchange)
  send(response, await route.handler(deps, exchange, session))
}

async function sessionFor({ identity }: AppDeps, route: MemberRoute, { client }: Exchange): Promise<Session> {
  const session = await identity.sessions.read(client)
  if (session === undefined) throw new Refused('session-ended', 'You were signed out. Sign in to go on.')
  const role = (await identity.members.of(session.person.id))?.role ?? 'owner' // of the Account that is about to be created
  if (!can(role, route.access)) throw notFound()
  if (route.isSensitive && !(await isFresh(identity, session))) throw new Refused('confirm', 'Confirm that it is you, then try again.')
  return session
}

function exchangeOf(request: Request): Exchange {
  const body: unknown = request.body
  return {
    id: String(request.res?.locals['requestID'] ?? ''),
    client: clientOf(request),
    params: Object.fromEntries(Object.entries(request.params).map(([name, value]) => [name, String(value)])),
    query: new URL(request.originalUrl, 'http://dashboard.invalid').searchParams,
    body: typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Record<string, unknown>) : {},
  }
}

function clientOf(request: Request): Client {
  return {
    address: request.ip ?? '',
    agent: (request.get('user-agent') ?? '').slice(0, MAX_AGENT),
    cookie: request.get('cookie') ?? '',
    origin: request.get('origin') ?? '',
  }
}

async function openApp({ identity, web }: AppDeps, request: Request, response: Response): Promise<void> {
  const session = await identity.sessions.read(clientOf(request))
  if (session === undefined) return send(response, signInFirst(request))
  for (const cookie of session.cookies) response.append('set-cookie', cookie)
  response.type('html').send(web.app)
}

/** Leads back to the page that was asked for. */
function signInFirst({ path, originalUrl }: Request): Answer {
  return redirect(path === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(originalUrl)}`)
}

function send(response: Response, answer: Answer): void {
  for (const cookie of answer.cookies ?? []) response.append('set-cookie', cookie)
  switch (answer.kind) {
    case 'page':
      return void response.status(answer.status).type('html').send(String(answer.page))
    case 'json':
      return void response.status(answer.status).json(answer.body)
    case 'empty':
      return void response.status(answer.status).end()
    case 'redirect':
      return response.redirect(303, answer.location)
    case 'file':
      return void response.attachment(answer.name).type(answer.type).send(answer.content)
  }
}

interface Failure {
  readonly refusal: Refused
  /** Whether the log gets a line, because the fault is ours. */
  readonly isOurs: boolean
}

function failureOf(error: unknown): Failure {
  if (error instanceof Refused) return { refusal: error, isOurs: error.status >= 500 }
  if (error instanceof Busy) {
    const { status, retryAfter } = error
    return status === 429
      ? { refusal: new Refused('too-many-requests', 'Too many requests. Wait a moment, then try again.', { retryAfter }), isOurs: false }
      : { refusal: busy(retryAfter), isOurs: true }
  }
  const outage = outageOf(error)
  if (outage !== undefined) return { refusal: outage, isOurs: true }
  const status = (error as { status?: unknown } | null)?.status // of the body parser and of the static files
  if (status === 404) return { refusal: notFound(), isOurs: false }
  if (typeof status === 'number' && status >= 400 && status < 500)
    return { refusal: new Refused('invalid', 'The request cannot be read.'), isOurs: false }
  return { refusal: new Refused('internal', 'Something went wrong on our side.'), isOurs: true }
}

/** A part that does not answer now: nothing is wrong with the request, and the same one will work later. */
function outageOf(error: unknown): Refused | undefined {
  const unavailable = (message: string): Refused => new Refused('unavailable', message, { retryAfter: OUTAGE_RETRY_SECONDS })
  if (isDatabaseFailure(error)) return unavailable('The database of the dashboard does not answer. Try again in a moment.')
  if (isKubeError(error, 'Unreachable', 'TooManyRequests'))
    return unavailable('The cluster does not answer. Your keys go on working. Try again in a moment.')
  const isLibraryBusy = (error as { statusCode?: unknown } | null)?.statusCode === 503 // of a password that is checked outside of the door
  return error instanceof HashQueueFull || isLibraryBusy ? busy(BUSY_RETRY_SECONDS) : undefined
}

function busy(retryAfter: number): Refused {
  return new Refused('unavailable', 'Too many people sign in at once. Try again in a moment.', { retryAfter, isBusy: true })
}

function answerErrors(deps: AppDeps): ErrorRequestHandler {
  return (error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const { refusal, isOurs } = failureOf(error)
    if (isDatabaseFailure(error)) deps.metrics.databaseFailed()
    const requestID = String(response.locals['requestID'] ?? '')
    if (isOurs) deps.log.error({ request: requestID, status: refusal.status, error: messageOf(error) }, 'a request failed')
    if (response.headersSent) return void response.destroy()
    const { retryAfter, fields } = refusal.details
    if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter))
    response.setHeader('cache-control', 'no-store')
    response.status(refusal.status)
    if (isApi(request)) {
      const { code, message } = refusal
      const body: Refusal = { error: { code, message, ...(fields ? { fields } : {}), requestID } }
      return void response.json(body)
    }
    if (refusal.code === 'session-ended') return send(response, signInFirst(request))
    response.type('html').send(String(pageOf(deps, refusal, { requestID, path: request.path })))
  }
}

function pageOf(
  { site, clock }: AppDeps,
  refusal: Refused,
  { requestID, path }: { readonly requestID: string; readonly path: string },
): ReturnType<typeof errorPage> {
  const tryAgain = path
  if (refusal.code === 'not-found') return notFoundPage(site)
  if (refusal.code === 'too-many-requests') return tooManyRequestsPage(site, { secondsToWait: refusal.details.retryAfter ?? 60, tryAgain })
  if (refusal.status < 500) return formExpiredPage(site, { goOn: tryAgain })
  const kind = refusal.code !== 'unavailable' ? 'internal' : refusal.details.isBusy ? 'busy' : 'outage'
  return errorPage(site, { kind, requestID, at: new Date(clock.now()), tryAgain })
}
