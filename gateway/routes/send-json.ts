import type { Exchange } from '../http/exchange.ts'
import { requestIdHeaders } from '../http/request-id.ts'

/** Answers 200 with JSON bytes. */
export function sendJson({ response, requestId }: Exchange, body: Buffer): void {
  const headers = requestIdHeaders(requestId)
  headers.push('content-type', 'application/json', 'content-length', String(body.length))
  response.writeHead(200, headers)
  response.end(body)
}
