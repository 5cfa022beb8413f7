import type { Exchange } from '../http/exchange.ts'
import { requestIdHeaders } from '../http/request-id.ts'

/** `GET /`: Claude Code looks whether anybody is there. */
export function home({ response, requestId }: Exchange): void {
  response.writeHead(200, requestIdHeaders(requestId).concat('content-length', '0'))
  response.end()
}
