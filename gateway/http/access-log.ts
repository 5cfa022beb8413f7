import { type GatewayError, type RowID, safeText } from '../errors.ts'
import type { Log } from '../process/log.ts'
import type { Exchange } from './exchange.ts'
import { inboundRequestId } from './request-id.ts'

/** Setting ACCESS_LOG: failures of ours and of backends only; those and a sample of everything; everything. */
export type AccessLogMode = 'errors' | 'sample' | 'all'

/** Lines of one row of the catalogue in a second; more are counted and named by the next line. An outage must not fill the disk of a node. */
const FAILURES_PER_SECOND = 10
const MAX_CAUSE_CHARACTERS = 512
/** One request in so many is logged in mode `sample`. */
const SAMPLE_EVERY = 100

/**
 * Makes the writer of access-log lines, called once per request when its connection is done with it.
 * A line never holds a Credential, a hash or a body.
 * What a client has caused is counted, not logged: a client can cause any number.
 * @param random in [0, 1); tests pass their own
 * @param more further fields of a line; `make run` alone has any
 */
export function createAccessLog(
  mode: AccessLogMode,
  log: Log,
  random: () => number = Math.random,
  more: (exchange: Exchange) => Readonly<Record<string, unknown>> = noFields,
): (exchange: Exchange) => void {
  const budgets = new Map<RowID, LineBudget>()
  const failed = (exchange: Exchange, error: GatewayError): void => {
    const budget = budgets.get(error.row.id) ?? new LineBudget(mode === 'all' ? Infinity : FAILURES_PER_SECOND)
    budgets.set(error.row.id, budget)
    const omitted = budget.take()
    if (omitted === undefined) return
    const isBug = error.row.id === 'internalError'
    const line = { ...lineOf(exchange), ...more(exchange), cause: describe(error.cause, isBug), ...(omitted > 0 ? { omitted } : {}) }
    log[isBug ? 'error' : 'warn'](line, 'request failed')
  }
  return (exchange) => {
    const { error } = exchange
    if (error && error.row.causedBy !== 'client') failed(exchange, error)
    else if (mode === 'all' || (mode === 'sample' && random() * SAMPLE_EVERY < 1))
      log.info({ ...lineOf(exchange), ...more(exchange) }, 'request')
  }
}

function noFields(): Readonly<Record<string, unknown>> {
  return {}
}

/** So many lines a second. */
class LineBudget {
  readonly #perSecond: number
  #second = 0
  #written = 0
  #omitted = 0

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** @returns lines that were left out since the last one; undefined when this one is left out as well */
  take(): number | undefined {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) this.#begin(second)
    if (this.#written >= this.#perSecond) {
      this.#omitted += 1
      return undefined
    }
    this.#written += 1
    const omitted = this.#omitted
    this.#omitted = 0
    return omitted
  }

  #begin(second: number): void {
    this.#second = second
    this.#written = 0
  }
}

function lineOf(exchange: Exchange): Record<string, unknown> {
  const { request, response, requestId, route, keyID, model, askedModel, error, backend, startedMs } = exchange
  return {
    requestId,
    inboundRequestId: inboundRequestId(request),
    method: request.method,
    route,
    target: error?.params.target, // of an unknown path: bounded, without query and Credential
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
  if (typeof cause === 'string') return { message: safeText(cause, MAX_CAUSE_CHARACTERS) }
  if (!(cause instanceof Error)) return { type: typeof cause }
  const { name, message, stack } = cause
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
  return { name, code, message: safeText(message, MAX_CAUSE_CHARACTERS), stack: withStack ? stack : undefined }
}
