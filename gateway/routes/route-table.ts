/** All routes. The app, the rows 5 and 6, the labels of metrics and the table in `docs/contract.md` follow from this table. */
import { DIALECTS } from '../dialects/all-dialects.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { home } from './home.ts'
import { inference, type InferenceDeps } from './inference.ts'
import { type KeyDeps, showKey } from './key.ts'
import { listModels, oneModel } from './models.ts'
import type { RouteHandler, RouteMethods } from './route.ts'

/** What the handlers need from the rest of the gateway. */
export interface RouteDeps extends Omit<InferenceDeps, 'models'>, KeyDeps {}

/** One row. Paths match exactly: case-sensitive, no trailing slash, any query. */
export interface Route {
  readonly methods: RouteMethods
  /** `{id}` matches any text, slashes included. The path decides the format of errors (`formatOfPath`). */
  readonly paths: readonly string[]
  /** Label for metrics and logs. */
  readonly label: string
  readonly handler: (deps: RouteDeps) => RouteHandler
}

export const ROUTES: readonly Route[] = [
  ...[...DIALECTS.values()].map(callRoute),
  { methods: 'GET, HEAD', paths: ['/v1/models', '/v1/v1/models'], label: '/v1/models', handler: listModels },
  { methods: 'GET, HEAD', paths: ['/v1/models/{id}', '/v1/v1/models/{id}'], label: '/v1/models', handler: oneModel },
  { methods: 'GET, HEAD', paths: ['/v1/key'], label: '/v1/key', handler: showKey },
  { methods: 'GET, HEAD', paths: ['/'], label: '/', handler: () => home },
]

/** The route of model calls in one dialect. */
export function callRoute(dialect: Dialect): Route {
  const { path, otherPaths = [] } = dialect
  return { methods: 'POST', paths: [path, ...otherPaths], label: path, handler: (deps) => inference(dialect, deps) }
}

/** Makes the pattern by which Express matches a path. */
export function pathPattern(path: string): string | RegExp {
  const [start = '', end] = path.split('{id}')
  return end === undefined ? path : new RegExp(`^${start}.+$`)
}
