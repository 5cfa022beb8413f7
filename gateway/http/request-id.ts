import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { safeText } from '../errors.ts'

/** Makes the id of a request. The gateway never uses an id from a client, because it could equal that of another request. */
export function newRequestId(): string {
  return `req_${randomUUID()}`
}

/**
 * Headers of every answer, as a flat name-value list for `writeHead`. OpenAI SDKs read the first, Anthropic SDKs the second. The list is
 * new each time, so the caller may append to it.
 */
export function requestIdHeaders(requestId: string): string[] {
  return ['x-request-id', requestId, 'request-id', requestId]
}

/** The id that a client or proxy sent, safe for the log; undefined without one. */
export function inboundRequestId(request: IncomingMessage): string | undefined {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' ? safeText(sent) : undefined
}
