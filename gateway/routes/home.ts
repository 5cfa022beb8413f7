import type { Exchange } from '../http/exchange.ts'
import { requestIdHeaders } from '../http/request-id.ts'

/** For people who open the address in a browser. No version: it would help an attacker. */
const TEXT = Buffer.from('This is a Headgate gateway to language models. GET /v1/models with an API key lists the models of that key.\n')

/** `GET /` and `HEAD /`. Claude Code sends HEAD to find out whether the gateway answers. */
export function home({ response, requestId }: Exchange): void {
  const headers = requestIdHeaders(requestId)
  headers.push('content-type', 'text/plain; charset=utf-8', 'content-length', String(TEXT.length))
  response.writeHead(200, headers)
  response.end(TEXT)
}
