import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Response } from 'express'
import type { Dialect, GatewayError } from '../errors.ts'
import { newRequestId } from './request-id.ts'

/** Routes as labels of metrics and logs: a closed list, never what a client sent. */
export type RouteLabel = '/v1/chat/completions' | '/v1/messages' | '/v1/models' | '/' | 'other'

/**
 * One request and its answer: what access log and metrics will want to know at the end, filled in on the way.
 * Every field exists from the start, so that all exchanges share one shape.
 */
export class Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string = newRequestId()
  /** By `performance.now`, ms. */
  readonly startedMs: number = performance.now()
  /** Decided by the path. */
  readonly dialect: Dialect
  route: RouteLabel = 'other'
  /** Public id of the Credential used. */
  keyID: string | undefined = undefined
  /** Model as the client wrote it; untrusted. */
  askedModel: string | undefined = undefined
  /** Served name, once the model is known; safe as a label. */
  model: string | undefined = undefined
  /** Name of the backend that answered. */
  backend: string | undefined = undefined
  /** What was refused or failed; with 200 sent already, the error of the last frame. */
  error: GatewayError | undefined = undefined

  constructor(request: IncomingMessage, response: ServerResponse, dialect: Dialect) {
    this.request = request
    this.response = response
    this.dialect = dialect
  }
}

/** What `response.locals` holds on every request of the gateway. */
export interface ExchangeLocals {
  exchange: Exchange
}

/** Express's response with the exchange on it, as handlers get it. */
export type Answer = Response<unknown, ExchangeLocals>

/** Format of errors on a path: `/v1/messages…` and `/v1/v1/…` are Anthropic's, all else OpenAI's. */
export function dialectOfPath(path: string): Dialect {
  return path.startsWith('/v1/messages') || path.startsWith('/v1/v1/') ? 'anthropic' : 'openai'
}
