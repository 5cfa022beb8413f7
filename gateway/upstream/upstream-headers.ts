/** The headers that pass the gateway, by an allow-list in both directions. */
import type { IncomingHttpHeaders } from 'node:http'

const FORWARDED = ['accept', 'traceparent', 'tracestate', 'openai-beta', 'x-session-id', 'x-session-affinity', 'x-claude-code-session-id']
const FORWARDED_PREFIX = 'x-codex-'
const ANTHROPIC = ['anthropic-version', 'anthropic-beta']
const RETURNED = ['content-type', 'cache-control', 'openai-processing-ms']

/** Headers that no setting may forward: the gateway sets them, they concern the connection, or they claim an identity of the caller. */
const NEVER =
  /^(authorization|proxy-.*|x-api-key|api-key|cookie|set-cookie|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-.*|accept-encoding|forwarded|x-forwarded-.*|x-real-ip|x-stainless-.*|x-request-id|request-id|x-headgate-.*|x-user.*|x-remote-.*)$/
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/

/** @param extra from the configuration @throws RangeError with a header that is never forwarded */
export function forwardedHeaders(extra: readonly string[] = []): ReadonlySet<string> {
  const names = extra.map((name) => name.trim().toLowerCase()).filter((name) => name !== '')
  for (const name of names) {
    if (!HEADER_NAME.test(name)) throw new RangeError(`FORWARD_HEADERS: "${name}" is not a header name; list names separated by commas`)
    if (NEVER.test(name)) throw new RangeError(`FORWARD_HEADERS: "${name}" may never be forwarded; take it out of the list`)
  }
  return new Set([...FORWARDED, ...names])
}

/**
 * The gateway requests uncompressed answers, because the relay reads them. It sets the content type itself: some servers decode the body by
 * the client's charset, and would read another model than the authorised one.
 */
const FIXED: readonly string[] = Object.freeze(['accept-encoding', 'identity'])

/** Counts the gateways that a request has passed. A client that sends the header can only refuse itself. */
const HOPS_HEADER = 'x-headgate-hops'
/** Maximum number of gateways: a gateway behind a gateway is fine, a loop is not. */
const MAX_HOPS = 3

/** @returns the number of gateways that a request has passed before; an invalid number counts as 0 */
function hopsOf(sent: IncomingHttpHeaders): number {
  const text = sent[HOPS_HEADER]
  return typeof text === 'string' && /^\d{1,3}$/.test(text) ? Number(text) : 0
}

export function isLoop(sent: IncomingHttpHeaders): boolean {
  return hopsOf(sent) >= MAX_HOPS
}

export interface HeaderSource {
  readonly sent: IncomingHttpHeaders
  /** Request headers that may pass. */
  readonly forwarded: ReadonlySet<string>
  /** Whether the request goes to Anthropic's API of the backend; `anthropic-version` and `anthropic-beta` are then forwarded. */
  readonly isAnthropic: boolean
  /** Of the body. */
  readonly contentType?: string | undefined
  /** Id of the gateway. The client's id is only logged. */
  readonly requestId: string
  /** Of the backend; undefined if it needs none. */
  readonly credential: string | undefined
}

/** Builds the headers of a request to a backend: name, value, name, value … The HTTP client adds `content-length` and `host`. */
export function upstreamHeaders({
  sent,
  forwarded,
  isAnthropic,
  requestId,
  credential,
  contentType = 'application/json',
}: HeaderSource): string[] {
  const headers = [...FIXED, 'content-type', contentType, 'x-request-id', requestId, HOPS_HEADER, String(hopsOf(sent) + 1)]
  if (credential !== undefined) headers.push('authorization', `Bearer ${credential}`)
  for (const name in sent) {
    if (!forwarded.has(name) && !name.startsWith(FORWARDED_PREFIX) && !(isAnthropic && ANTHROPIC.includes(name))) continue
    const value = sent[name]
    if (typeof value === 'string') headers.push(name, value)
  }
  return headers
}

/** Selects the headers of a backend's answer that reach the client: name, value, name, value … */
export function returnedHeaders(answer: IncomingHttpHeaders): string[] {
  const headers: string[] = []
  for (const name of RETURNED) {
    const value = answer[name]
    if (typeof value === 'string') headers.push(name, value)
  }
  return headers
}
