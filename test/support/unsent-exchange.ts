import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Exchange } from '../../gateway/http/exchange.ts'

/** An exchange of the OpenAI format without a connection. */
export function unsentExchange(request = new IncomingMessage(new Socket())): Exchange {
  return new Exchange(request, new ServerResponse(request), 'openai')
}
