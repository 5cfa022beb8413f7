/** Which headers cross the gateway. Both ways by allow-list: what is not named here never passes. */
import type { IncomingHttpHeaders } from 'node:http'

const FORWARDED = ['accept', 'traceparent', 'tracestate', 'openai-beta', 'x-session-id', 'x-session-affinity', 'x-claude-code-session-id']
const FORWARDED_PREFIX = 'x-codex-'
const NATIVE = ['anthropic-version', 'anthropic-beta']
const RETURNED = ['content-type', 'cache-control', 'openai-processing-ms']

/** Set by us, about the connection, or claiming who the caller is: no setting may forward these. */
const NEVER =
  /^(authorization|proxy-.*|x-api-key|api-key|cookie|set-cookie|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-.*|accept-encoding|forwarded|x-forwarded-.*|x-real-ip|x-stainless-.*|x-request-id|request-id|x-headgate-.*|x-user.*|x-remote-.*)$/
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/

/**
 * The request headers that may pass, lower-case.
 * @param extra more of them, from the configuration
 * @throws RangeError naming a header that may never pass
 */
export function forwardedHeaders(extra: readonly string[] = []): ReadonlySet<string> {
  const names = extra.map((name) => name.trim().toLowerCase()).filter((name) => name !== '')
  for (const name of names) {
    if (!HEADER_NAME.test(name)) throw new RangeError(`FORWARD_HEADERS: "${name}" is no header name; list names separated by commas`)
    if (NEVER.test(name)) throw new RangeError(`FORWARD_HEADERS: "${name}" may never be forwarded; take it out of the list`)
  }
  return new Set([...FORWARDED, ...names])
}

/**
 * Answers are asked for uncompressed: the relay reads them. The type is never the client's: some servers decode the body by the charset
 * that it names, and would read another model than the one that was authorised.
 */
const FIXED: readonly string[] = Object.freeze(['accept-encoding', 'identity', 'content-type', 'application/json'])

/** Counts the gateways that a request has come through. A client that sends it only refuses itself. */
export const HOPS_HEADER = 'x-headgate-hops'
/** A gateway behind a gateway is fine; a ring is not. */
const MAX_HOPS = 3

/** @returns gateways that a request has come through before this one; what is no count reads as 0 */
export function hopsOf(sent: IncomingHttpHeaders): number {
  const text = sent[HOPS_HEADER]
  return typeof text === 'string' && /^\d{1,3}$/.test(text) ? Number(text) : 0
}

/** Whether a request has come through so many gateways that they call each other. */
export function isLoop(sent: IncomingHttpHeaders): boolean {
  return hopsOf(sent) >= MAX_HOPS
}

/** What the headers of one request to a backend are made of. */
export interface HeaderSource {
  /** What the client sent. */
  readonly sent: IncomingHttpHeaders
  readonly forwarded: ReadonlySet<string>
  /** The backend speaks the Messages API and this is a request of it: `anthropic-version` and `anthropic-beta` pass. */
  readonly isNative: boolean
  /** Ours; the client's is logged, not trusted. */
  readonly requestId: string
  /** Of the backend, undefined when it wants none. */
  readonly credential: string | undefined
}

/** Headers of one request to a backend: name, value, name, value … `content-length` and `host` come from the HTTP client. */
export function upstreamHeaders({ sent, forwarded, isNative, requestId, credential }: HeaderSource): string[] {
  const headers = [...FIXED, 'x-request-id', requestId, HOPS_HEADER, String(hopsOf(sent) + 1)]
  if (credential !== undefined) headers.push('authorization', `Bearer ${credential}`)
  for (const name in sent) {
    if (!forwarded.has(name) && !name.startsWith(FORWARDED_PREFIX) && !(isNative && NATIVE.includes(name))) continue
    const value = sent[name]
    if (typeof value === 'string') headers.push(name, value)
  }
  return headers
}

/** The headers of an answer of a backend that reach the client: name, value, name, value … */
export function returnedHeaders(answer: IncomingHttpHeaders): string[] {
  const headers: string[] = []
  for (const name of RETURNED) {
    const value = answer[name]
    if (typeof value === 'string') headers.push(name, value)
  }
  return headers
}
