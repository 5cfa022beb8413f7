/** The headers that pass the gateway, by an allow-list in both directions. */
import type { IncomingHttpHeaders } from 'node:http'
import { refusalOfHeader } from '#contract/values/forward-headers.ts'
import type { OwnHeaders } from './model-table.ts'

const FORWARDED = ['accept', 'traceparent', 'tracestate', 'openai-beta', 'x-session-id', 'x-session-affinity', 'x-claude-code-session-id']
const FORWARDED_PREFIX = 'x-codex-'
const ANTHROPIC = ['anthropic-version', 'anthropic-beta']
const RETURNED = ['cache-control', 'openai-processing-ms']

/** @param extra from the configuration @throws RangeError that names a header that is never forwarded */
export function forwardedHeaders(extra: readonly string[] = []): ReadonlySet<string> {
  const names = extra.map((name) => name.trim().toLowerCase()).filter((name) => name !== '')
  for (const name of names) {
    const why = refusalOfHeader(name)
    if (why !== undefined) throw new RangeError(`contains "${name}", which may not be forwarded, since ${why}`)
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
  /** More of them, of the model that is called. */
  readonly ofModel?: ReadonlySet<string> | undefined
  /** Whether the request goes to Anthropic's API of the backend; `anthropic-version` and `anthropic-beta` are then forwarded. */
  readonly isAnthropic: boolean
  /** Of the body. */
  readonly contentType?: string | undefined
  /** Id of the gateway. The client's id is only logged. */
  readonly requestId: string
  /** Of the backend; undefined if it needs none. */
  readonly credential: string | undefined
  readonly own: OwnHeaders
}

/** Builds the headers of a request to a backend: name, value, name, value … The HTTP client adds `content-length` and `host`. */
export function upstreamHeaders(source: HeaderSource): string[] {
  const { sent, requestId, credential, own, contentType = 'application/json' } = source
  const headers = [...FIXED, 'content-type', contentType, 'x-request-id', requestId, HOPS_HEADER, String(hopsOf(sent) + 1), ...own.fixed]
  if (credential !== undefined) headers.push(own.credential, own.prefix + credential)
  for (const name in sent) {
    const value = sent[name]
    if (typeof value === 'string' && passes(name, source)) headers.push(name, value)
  }
  return headers
}

function passes(name: string, { forwarded, ofModel, isAnthropic, own }: HeaderSource): boolean {
  if (own.names.has(name)) return false
  if (forwarded.has(name) || name.startsWith(FORWARDED_PREFIX)) return true
  return ofModel?.has(name) === true || (isAnthropic && ANTHROPIC.includes(name))
}

/**
 * Selects the headers of a backend's answer that reach the client: name, value, name, value …
 * @param type that the gateway gives the answer: a server must not choose how a browser reads it
 */
export function returnedHeaders(answer: IncomingHttpHeaders, type: string): string[] {
  const headers: string[] = ['content-type', type]
  for (const name of RETURNED) {
    const value = answer[name]
    if (typeof value === 'string') headers.push(name, value)
  }
  return headers
}
