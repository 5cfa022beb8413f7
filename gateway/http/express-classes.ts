import { IncomingMessage, ServerResponse, type RequestListener } from 'node:http'
import type { Express } from 'express'

/** Options of `createServer`: what requests and answers are made of. */
export interface MessageClasses {
  readonly IncomingMessage?: typeof IncomingMessage
  readonly ServerResponse?: typeof ServerResponse
}

/**
 * Classes whose instances are born with the prototypes and the `locals` that Express gives each request and answer. It sets them all the
 * same, but to what they are already: a changed prototype costs V8 a search outside of compiled code, and slows every later access
 * (measured together: 3 µs a request).
 * @returns nothing for a listener that is no Express app
 */
export function messageClasses(app: RequestListener): MessageClasses {
  if (!isExpress(app)) return {}
  class AppRequest extends IncomingMessage {}
  class AppResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
    readonly locals = {}
  }
  Object.setPrototypeOf(AppRequest.prototype, app.request)
  Object.setPrototypeOf(AppResponse.prototype, app.response)
  Object.assign(app, { request: AppRequest.prototype, response: AppResponse.prototype })
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}

function isExpress(app: RequestListener): app is RequestListener & Pick<Express, 'request' | 'response'> {
  return 'request' in app && 'response' in app
}
