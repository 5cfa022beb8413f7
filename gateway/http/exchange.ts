import { randomUUID } from 'node:crypto'
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorFormat, GatewayError } from '../errors.ts'
import { type Intrusive, NO_SLOT } from '#platform/intrusive-set.ts'
import type { BodyHold } from './body-budget.ts'
import type { Share } from './shares.ts'

export const NO_ROUTE = 'other'

/** A running call to a model. */
export interface Running {
  /** Ends the work properly: a stream gets its last frame. */
  interrupt(): void
  /** The answer has closed: all of it was sent, or the client has left. */
  clientClosed(): void
}

/** One request and its answer. Every field exists from the start, so that V8 gives all exchanges one shape. */
export class Exchange implements Intrusive {
  slot = NO_SLOT
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string = newRequestId()
  /** By `performance.now`, ms. */
  readonly startedMs: number = performance.now()
  readonly format: ErrorFormat
  /** Label of the route table, for metrics and logs. Never text from a client. */
  route: string = NO_ROUTE
  keyID: string | undefined = undefined
  askedModel: string | undefined = undefined
  /** Served name, once the model is known; safe as a label. */
  model: string | undefined = undefined
  /** Namespace of the ServedModel, once the model is known. */
  modelNamespace: string | undefined = undefined
  backend: string | undefined = undefined
  /** The error that the client received. After a 200 it is the error of the last frame. */
  error: GatewayError | undefined = undefined
  /** What an admitted model call of a known key counts for; undefined for any other request. */
  callOf: { readonly tenant: Share; readonly key: Share } | undefined = undefined
  /** Whether a shutdown has passed its deadline: no call to a model starts any more. */
  isInterrupted = false
  /** Booking of the body's bytes. It ends with the first byte of the answer, or with the exchange. */
  bodyHold: BodyHold | undefined = undefined
  /**
   * The running call to a model, if any. The field holds an object instead of a closure: with a closure, V8 kept finished exchanges alive
   * until the next full garbage collection, and young collections took 30 ms instead of 2.
   */
  running: Running | undefined = undefined
  /** Headers for the page in a browser that has sent the request: name, value, name, value … */
  cors: readonly string[] | undefined = undefined

  constructor(request: IncomingMessage, response: ServerResponse, format: ErrorFormat) {
    this.request = request
    this.response = response
    this.format = format
  }

  /** Headers of every answer. A new list, to which the caller may append. */
  ownHeaders(): string[] {
    const headers = commonHeaders(this.requestId)
    return this.cors === undefined ? headers : headers.concat(this.cors)
  }

  /** Whether the answer began well and broke off afterwards, which its status cannot tell. */
  get isBroken(): boolean {
    return this.error !== undefined && this.response.headersSent && this.response.statusCode < 400
  }
}

/** An answer of the gateway's server. The field exists from the start, so that all answers have one shape. */
export class Answer<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  exchange: Exchange | undefined = undefined
}

/** Format of errors on a path: `/v1/messages…` and `/v1/v1/…` are Anthropic's, all else OpenAI's. */
export function formatOfPath(path: string): ErrorFormat {
  return path.startsWith('/v1/messages') || path.startsWith('/v1/v1/') ? 'anthropic' : 'openai'
}

/** Makes the id of a request. The gateway never uses an id from a client, because it could equal that of another request. */
export function newRequestId(): string {
  return `req_${randomUUID()}`
}

/** The id for the SDKs: those of OpenAI read the first header, those of Anthropic the second. No browser takes an answer for another type. */
export function commonHeaders(requestId: string): string[] {
  return ['x-request-id', requestId, 'request-id', requestId, 'x-content-type-options', 'nosniff']
}
