import { GatewayError, type RowID, safeText } from '../errors.ts'
import type { Log } from '#platform/log.ts'
import type { Exchange } from './exchange.ts'

/** Setting ACCESS_LOG. `errors`: failures of the gateway and of backends, and broken answers. `sample`: those and 1 % of the rest. `all`: every request. */
export type AccessLogMode = 'errors' | 'sample' | 'all'

/** Lines per second and row, so that an outage does not fill the disk. The next line has the number of omitted ones. */
const FAILURES_PER_SECOND = 10
const MAX_CAUSE_CHARACTERS = 512
/** Errors of a chain that a line shows. */
const MAX_CAUSES = 4
const SAMPLE_EVERY = 100

/**
 * Makes the writer of access-log lines. The app calls it once per request, when the response has closed. A line never contains a
 * Credential, a hash or a body. Errors that clients cause are counted, not logged, because a client can cause any number.
 * @param random in [0, 1); tests pass their own
 * @param more further fields of a line; `make run` alone has any
 */
export function createAccessLog(
  mode: AccessLogMode,
  log: Log,
  random: () => number = Math.random,
  more: (exchange: Exchange) => Readonly<Record<string, unknown>> = () => ({}),
): (exchange: Exchange) => void {
  const budgets = new Map<RowID, LineBudget>()
  const failed = (exchange: Exchange, error: GatewayError): void => {
    const budget = budgets.get(error.row.id) ?? new LineBudget()
    budgets.set(error.row.id, budget)
    const omitted = budget.take(mode === 'all' ? Infinity : FAILURES_PER_SECOND)
    if (omitted === undefined) return
    const isBug = error.row.id === 'internalError'
    const cause = describe(error.cause ?? (exchange.isBroken ? error.message : undefined), isBug)
    const line = { ...lineOf(exchange), ...more(exchange), cause, ...(omitted > 0 ? { omitted } : {}) }
    log[isBug ? 'error' : 'warn'](line, 'request failed')
  }
  return (exchange) => {
    const { error } = exchange
    if (error && (error.row.causedBy !== 'client' || exchange.isBroken)) failed(exchange, error)
    else if (mode === 'all' || (mode === 'sample' && random() * SAMPLE_EVERY < 1))
      log.info({ ...lineOf(exchange), ...more(exchange) }, 'request')
  }
}

class LineBudget {
  #second = 0
  #written = 0
  #omitted = 0

  /** @returns the number of lines omitted since the last one; undefined if this line is omitted too */
  take(perSecond: number): number | undefined {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) [this.#second, this.#written] = [second, 0]
    if (this.#written >= perSecond) {
      this.#omitted += 1
      return undefined
    }
    this.#written += 1
    const omitted = this.#omitted
    this.#omitted = 0
    return omitted
  }
}

function lineOf(exchange: Exchange): Record<string, unknown> {
  const { request, response, requestId, route, keyID, model, askedModel, error, backend, startedMs } = exchange
  const inbound = request.headers['x-request-id'] // of a client or proxy
  return {
    requestId,
    inboundRequestId: typeof inbound === 'string' ? safeText(inbound) : undefined,
    method: request.method,
    route,
    target: error?.params.target, // of an unknown path; bounded, without query and Credential
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

/** Follows the chain of the gateway's own errors to the words of a server, or to an error of Node. */
function describe(cause: unknown, withStack: boolean, depth = 1): Record<string, unknown> | undefined {
  if (cause === undefined) return undefined
  if (typeof cause === 'string') return { message: safeText(cause, MAX_CAUSE_CHARACTERS) }
  if (!(cause instanceof Error)) return { type: typeof cause }
  if (cause instanceof GatewayError) {
    const inner = depth < MAX_CAUSES ? describe(cause.cause, withStack, depth + 1) : undefined
    return { name: cause.row.id, message: safeText(cause.message, MAX_CAUSE_CHARACTERS), cause: inner }
  }
  const { name, message, stack } = cause
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
  return { name, code, message: safeText(message, MAX_CAUSE_CHARACTERS), stack: withStack ? stack : undefined }
}
