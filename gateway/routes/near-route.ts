/** Row 5: the refusal of an unknown path, with the route that the client probably meant. An answer takes 5 µs. */
import { GatewayError, safeText } from '../errors.ts'
import { isOneEditAway } from './near-model.ts'
import { pathPattern, type Route } from './route-table.ts'

const MAX_PATH_CHARACTERS = 256
const MAX_SHOWN_CHARACTERS = 96
/** Segments that the answer may repeat. Any other segment may be a Credential, for example a percent-encoded one, and is replaced. */
const SHOWN_SEGMENT = /^[0-9A-Za-z._~:@-]{0,32}$/

/** Paths below `/v1` of vendor APIs that this gateway does not serve. */
const NOT_BUILT: readonly string[] = [
  ...['messages', 'complete', 'responses', 'images', 'audio', 'videos', 'realtime', 'moderations'],
  ...['files', 'uploads', 'batches', 'fine_tuning', 'vector_stores', 'assistants', 'threads', 'conversations'],
]

const OTHER_APIS: readonly (readonly [start: string, hint: string])[] = [
  ['/openai/', 'this is a path of Azure OpenAI; use the plain OpenAI client with a base URL that ends in /v1'],
  ['/api/', "this is a path of Ollama's own API; use its OpenAI-compatible one with a base URL that ends in /v1"],
  ['/v1beta/', 'this is a path of the Gemini API; use an OpenAI client with a base URL that ends in /v1'],
]

const BASE_URL = 'a base URL ends in /v1 for OpenAI clients and has no path for Anthropic clients'

/** Differences between a path and that of a route, in words that follow "The path". */
const DIFFERENCES: readonly (readonly [text: string, isIn: (path: string) => boolean])[] = [
  ['has two slashes in a row', (path) => path.includes('//')],
  ['ends with a slash', (path) => path.endsWith('/')],
  ['differs in upper and lower case', (path) => path !== path.toLowerCase()],
]

interface Served {
  /** For example `POST /v1/messages`. */
  readonly name: string
  readonly tail: string
  readonly pattern: string | RegExp
}

/** @returns a function of the method and the path without query */
export function unknownPaths(routes: readonly Route[]): (method: string, path: string) => GatewayError {
  const served = routes.flatMap(servedBy)
  const all = `this gateway serves ${served.flatMap(({ name, pattern }) => (typeof pattern === 'string' ? [name] : [])).join(', ')}`
  return (method, path) => {
    const cut = path.slice(0, MAX_PATH_CHARACTERS)
    const spelling = spellingOf(cut)
    const otherApi = OTHER_APIS.find(([start]) => cut.startsWith(start))?.[1]
    const reason = otherApi ?? nearRoute(served, cut, spelling) ?? notBuilt(spelling, all) ?? all
    return new GatewayError('unknownPath', { target: `${method} ${shownPath(cut)}`, reason })
  }
}

/** The route as the answer names it: by its first path. The other paths serve clients with another base URL. */
function servedBy({ methods, paths: [path = '/'] }: Route): Served[] {
  if (!path.startsWith('/v1/')) return []
  return [{ name: `${methods === 'POST' ? 'POST' : 'GET'} ${path}`, tail: path.slice('/v1'.length), pattern: pathPattern(path) }]
}

/** Splits a path into the number of `/v1` segments at its beginning and the rest. */
function spellingOf(path: string) {
  const parts = path.split('/').filter((part) => part !== '')
  const first = parts.findIndex((part) => part.toLowerCase() !== 'v1')
  const versions = first < 0 ? parts.length : first
  return { tail: `/${parts.slice(versions).join('/')}`, versions }
}

/** Finds a route with the same end. This covers base URLs with an own path, and base URLs that contain a whole route. */
function nearRoute(served: readonly Served[], path: string, { tail, versions }: ReturnType<typeof spellingOf>): string | undefined {
  const lower = tail.toLowerCase()
  const same = served.find(({ pattern, tail: end }) => (typeof pattern === 'string' ? lower === end : pattern.test(`/v1${lower}`)))
  const longer = same ?? served.find(({ pattern, tail: end }) => typeof pattern === 'string' && lower.endsWith(end))
  const near = longer ?? served.find(({ pattern, tail: end }) => typeof pattern === 'string' && isOneEditAway(lower, end))
  if (near === undefined) return undefined
  const start = same === undefined && longer !== undefined ? 'has extra segments before it' : startOf(versions)
  const differences = [start, ...DIFFERENCES.flatMap(([text, isIn]) => (isIn(path) ? [text] : []))].filter((text) => text !== undefined)
  if (differences.length === 0) return `did you mean ${near.name}?`
  return `did you mean ${near.name}? The path ${differences.join(' and ')}${start === undefined ? '' : `; ${BASE_URL}`}`
}

function startOf(versions: number): string | undefined {
  if (versions === 1) return undefined
  return versions === 0 ? 'lacks /v1' : 'has /v1 more than once'
}

function notBuilt({ tail }: ReturnType<typeof spellingOf>, all: string): string | undefined {
  const known = NOT_BUILT.find((name) => tail === `/${name}` || tail.startsWith(`/${name}/`))
  return known && `this gateway does not serve this route; ${all}`
}

function shownPath(path: string): string {
  const shown = path
    .split('/')
    .map((segment) => (SHOWN_SEGMENT.test(segment) ? segment : '…'))
    .join('/')
  return shown.length <= MAX_SHOWN_CHARACTERS ? safeText(shown) : `${safeText(shown, MAX_SHOWN_CHARACTERS)}…`
}
