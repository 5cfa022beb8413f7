/** One request and its answer, apart from the HTTP library: handlers take an Exchange and return an Answer. */
import { randomBytes } from 'node:crypto'
import type { Html } from '../pages/html.ts'

/** Who asks, as far as the connection tells. */
export interface Client {
  /** Address behind the trusted proxies. */
  readonly address: string
  /** User-Agent, at most 200 characters. */
  readonly agent: string
  /** The header Cookie; '' without one. */
  readonly cookie: string
  /** The header Origin; '' without one. */
  readonly origin: string
}

export interface Exchange {
  readonly id: string
  readonly client: Client
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The fields of a form or of a JSON object; {} without a body. */
  readonly body: Readonly<Record<string, unknown>>
}

/** What goes back. `cookies` are whole Set-Cookie values. */
export type Answer = {
  readonly cookies?: readonly string[]
} & (
  | { readonly kind: 'page'; readonly status: number; readonly page: Html }
  | { readonly kind: 'json'; readonly status: number; readonly body: object }
  | { readonly kind: 'empty'; readonly status: 202 | 204 }
  | { readonly kind: 'redirect'; readonly location: string }
  | { readonly kind: 'file'; readonly name: string; readonly type: string; readonly content: string }
)

const ID_BYTES = 8

export function newRequestID(): string {
  return `req_${randomBytes(ID_BYTES).toString('base64url')}`
}

export function json(body: object, cookies: readonly string[] = []): Answer {
  return { kind: 'json', status: 200, body, cookies }
}

export function empty(status: 202 | 204 = 204, cookies: readonly string[] = []): Answer {
  return { kind: 'empty', status, cookies }
}

export function redirect(location: string, cookies: readonly string[] = []): Answer {
  return { kind: 'redirect', location, cookies }
}

export function page(html: Html, { status = 200, cookies = [] as readonly string[] } = {}): Answer {
  return { kind: 'page', status, page: html, cookies }
}

/** The value of a cookie as the browser sent it; undefined without one. */
export function cookieOf({ cookie }: Client, name: string): string | undefined {
  return cookie
    .split(/;\s*/)
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1)
}
