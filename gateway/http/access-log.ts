import { safeText } from '../errors.ts'
import type { Log } from '../process/log.ts'
import type { Exchange } from './exchange.ts'
import { inboundRequestId } from './request-id.ts'

/** Setting ACCESS_LOG: failures of ours and of backends only; those and a sample of everything; everything. */
export type AccessLogMode = 'errors' | 'sample' | 'all'

/** First row of the catalogue that is no refusal but a failure. Refusals are counted, not logged: a client can cause any number. */
const FIRST_FAILURE_ROW = 24
/** One request in so many is logged in mode `sample`. */
const SAMPLE_EVERY = 100

/**
 * Makes the writer of access-log lines, called once per request when its connection is done with it.
 * A line never holds a Credential, a hash or a body.
 * @param random in [0, 1); tests pass their own
 */
export function createAccessLog(mode: AccessLogMode, log: Log, random: () => number = Math.random): (exchange: Exchange) => void {
  return (exchange) => {
    const { error } = exchange
    if (error && error.row.number >= FIRST_FAILURE_ROW && !isRefusal(error.row.number)) {
      const isBug = error.row.id === 'internalError'
      log[isBug ? 'error' : 'warn']({ ...lineOf(exchange), cause: describe(error.cause, isBug) }, 'request failed')
    } else if (mode === 'all' || (mode === 'sample' && random() * SAMPLE_EVERY < 1)) {
      log.info(lineOf(exchange), 'request')
    }
  }
}

/** Rows 29 to 31 are the backend refusing what the client sent; from 37 on it was no HTTP. */
function isRefusal(row: number): boolean {
  return (row >= 29 && row <= 31) || row >= 37
}

function lineOf(exchange: Exchange): Record<string, unknown> {
  const { request, response, requestId, route, keyID, model, askedModel, error, backend, startedMs } = exchange
  return {
    requestId,
    inboundRequestId: inboundRequestId(request),
    method: request.method,
    route,
    keyID,
    model: model ?? (askedModel === undefined ? undefined : safeText(askedModel)),
    row: error?.row.number,
    error: error?.row.id,
    backend,
    status: response.headersSent ? response.statusCode : undefined,
    clientGone: response.writableFinished ? undefined : true,
    durationMs: Math.round((performance.now() - startedMs) * 1000) / 1000,
  }
}

/** The cause of a failure without anything that a request carried. */
function describe(cause: unknown, withStack: boolean): Record<string, unknown> | undefined {
  if (cause === undefined) return undefined
  if (!(cause instanceof Error)) return { type: typeof cause }
  const { name, message, stack } = cause
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
  return { name, code, message: safeText(message, 512), stack: withStack ? stack : undefined }
}
