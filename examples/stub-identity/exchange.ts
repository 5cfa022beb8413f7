/** Requests and answers of the stand-in providers: a table of routes over `node:http`. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

/** A request, read once. */
export interface Asked {
  readonly method: string
  readonly query: URLSearchParams
  /** Fields of a form; empty for other requests. */
  readonly form: URLSearchParams
  readonly headers: IncomingMessage['headers']
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type Handler = (asked: Asked) => Answer | Promise<Answer>

/** Handlers by `METHOD /path`. */
export type Routes = Readonly<Record<string, Handler>>

/** Longest form, bytes. */
const MAX_FORM = 10_000
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Makes the server of a provider. The caller lets it listen. */
export function serverOf(routes: Routes): Server {
  return createServer((request, response) => {
    handle(request, response, routes).catch(() => response.destroy()) // only a client that has left causes this
  })
}

async function handle(request: IncomingMessage, response: ServerResponse, routes: Routes): Promise<void> {
  const { method = '', headers, url = '' } = request
  const [path = '', ...query] = url.split('?')
  const route = `${method} ${path}`
  const handler = Object.hasOwn(routes, route) ? routes[route] : undefined
  if (handler === undefined) return send(response, json(404, { message: 'Not Found' }))
  const form = await formOf(request)
  if (form === undefined) return send(response, json(413, { message: 'The form is too long' }))
  send(response, await handler({ method, query: new URLSearchParams(query.join('?')), form, headers }))
}

/** @returns undefined for a form that is too long */
async function formOf(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length
    if (length <= MAX_FORM) pieces.push(piece) // the rest is read and dropped: a loop that ends early would close the connection without an answer
  }
  if (length > MAX_FORM) return undefined
  const isForm = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() === FORM_TYPE
  return new URLSearchParams(isForm ? Buffer.concat(pieces).toString('utf8') : '')
}

/** No answer may be stored: each one holds a code, a token or a person. */
function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, { 'cache-control': 'no-store', 'content-length': Buffer.byteLength(body), ...headers })
  response.end(body)
}

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

/** A redirect with parameters; parameters without a value are left out. */
export function redirect(to: string, parameters: Readonly<Record<string, string | undefined>>): Answer {
  const url = new URL(to)
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value)
  return { status: 303, headers: { location: url.href }, body: '' } // 303: the form was posted, the next request is a GET
}

/** The value of an `Authorization: Bearer` header. */
export function bearerOf({ headers }: Asked): string {
  return /^(?:bearer|token) +(\S+)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
}
