/** All routes. The app, the rows 5 and 6, the labels of metrics and the table in `docs/contract.md` follow from this table. */
import type { Dialect } from '../dialects/dialect.ts'
import { DIALECTS } from '../dialects/dialects.ts'
import { inference } from './inference.ts'
import { showKey } from './key.ts'
import { listModels, oneModel } from './models.ts'
import { type RouteDeps, type RouteHandler, type RouteMethods, send } from './route.ts'

/** One row. Paths match exactly: case-sensitive, no trailing slash, any query. */
export interface Route {
  readonly methods: RouteMethods
  /** `{id}` matches any text, slashes included. The path decides the format of errors (`formatOfPath`). */
  readonly paths: readonly string[]
  readonly label: string
  readonly handler: (deps: RouteDeps) => RouteHandler
}

/** For people who open the address in a browser. No version: it would help an attacker. */
const HOME = Buffer.from('This is a Headgate gateway to language models. GET /v1/models with an API key lists the models of that key.\n')
/** Claude Code sends HEAD to find out whether the gateway answers. */
const home: RouteHandler = (exchange) => send(exchange, HOME, 'text/plain; charset=utf-8')

export const ROUTES: readonly Route[] = [
  ...[...DIALECTS.values()].map(callRoute),
  { methods: 'GET, HEAD', paths: ['/v1/models', '/v1/v1/models'], label: '/v1/models', handler: listModels },
  { methods: 'GET, HEAD', paths: ['/v1/models/{id}', '/v1/v1/models/{id}'], label: '/v1/models', handler: oneModel },
  { methods: 'GET, HEAD', paths: ['/v1/key'], label: '/v1/key', handler: showKey },
  { methods: 'GET, HEAD', paths: ['/'], label: '/', handler: () => home },
]

function callRoute(dialect: Dialect): Route {
  const { path, otherPaths = [] } = dialect
  return { methods: 'POST', paths: [path, ...otherPaths], label: path, handler: (deps) => inference(dialect, deps) }
}

/** Makes the pattern by which Express matches a path. */
export function pathPattern(path: string): string | RegExp {
  const [start = '', end] = path.split('{id}')
  return end === undefined ? path : new RegExp(`^${start}.+$`)
}
