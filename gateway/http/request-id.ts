import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { safeText } from '../errors.ts'

/** Makes the id of one request. Ours alone counts: one sent by a client could be made to collide with another's. */
export function newRequestId(): string {
  return `req_${randomUUID()}`
}

/**
 * Headers that every answer has, as a flat name-value list for `writeHead`: OpenAI SDKs read the first, Anthropic SDKs the second.
 * The list is new each time, so a writer may append to it.
 */
export function requestIdHeaders(requestId: string): string[] {
  return ['x-request-id', requestId, 'request-id', requestId]
}

/** The id that a client or a proxy gave, fit for the log and for nothing else; undefined without one. */
export function inboundRequestId(request: IncomingMessage): string | undefined {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' ? safeText(sent) : undefined
}
