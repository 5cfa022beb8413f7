/**
 * The one handler of all model calls. What is checked, and in which order, is the list `STEPS`: the first step that refuses answers, and
 * a refusal costs the caller nothing. A dialect fills in what differs.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import type { Caller } from '../auth/caller.ts'
import type { InferenceDialect, ModelRequest } from '../dialects/dialect.ts'
import { GatewayError, sharedError } from '../errors.ts'
import type { Answer, Exchange } from '../http/exchange.ts'
import { checkDeclaredBody, readBody } from '../http/read-body.ts'
import type { ErrorSender } from '../http/send-error.ts'
import type { KeyRecord } from '../shared/key-record.ts'
import type { ForwardJob, Outcome } from '../upstream/dispatch.ts'
import type { ModelEntry } from '../upstream/model-entry.ts'
import { asObject, type JsonBody } from '../upstream/splice.ts'

/** What model calls need from the rest of the gateway. */
export interface InferenceDeps {
  readonly errors: ErrorSender
  /** Who is asking, or rows 1 to 4 and 24. Never waits. */
  authenticate(request: IncomingMessage): Caller | GatewayError
  /** Whether a key is allowed to use a model that has these names. */
  admits(record: KeyRecord, names: readonly string[]): boolean
  readonly models: { resolve(namespace: string, name: string): ModelEntry | undefined }
  /** Sends the request to a backend and its answer to the client. */
  forward(job: ForwardJob): Promise<Outcome>
  /** Largest request body, bytes. */
  readonly maxBodyBytes: number
}

/** Makes the handler of one route. Rejects only on a bug of ours. */
export function inference(dialect: InferenceDialect, deps: InferenceDeps): (request: Request, response: Answer) => Promise<void> {
  return async (_, response) => {
    const { exchange } = response.locals
    exchange.route = dialect.path
    const call = new Call(exchange, dialect, deps)
    for (const step of STEPS) {
      const judged = step(call)
      const verdict = judged instanceof Promise ? await judged : judged // most steps decide at once
      if (verdict === undefined) continue
      if (verdict instanceof GatewayError) deps.errors.send(exchange, verdict)
      return
    }
  }
}

/** One model call on its way through the steps. What a step finds out later ones may rely on. */
class Call {
  readonly exchange: Exchange
  readonly dialect: InferenceDialect
  readonly deps: InferenceDeps
  bytes: Buffer = EMPTY
  body: JsonBody = NOT_PARSED
  asked: ModelRequest = NOT_READ
  entry: ModelEntry | undefined = undefined
  #caller: Caller | undefined = undefined

  constructor(exchange: Exchange, dialect: InferenceDialect, deps: InferenceDeps) {
    this.exchange = exchange
    this.dialect = dialect
    this.deps = deps
  }

  /** @throws TypeError before `identify` has succeeded: nothing may be decided for nobody */
  get caller(): Caller {
    if (!this.#caller) throw new TypeError('the caller is used before it is known')
    return this.#caller
  }

  set caller(caller: Caller) {
    this.#caller = caller
  }
}

const EMPTY = Buffer.alloc(0)
const NOT_PARSED: JsonBody = { bytes: EMPTY, text: '', value: {} }
const NOT_READ: ModelRequest = { model: '', stream: false }

/** A refusal; `answered` when there is nothing left to do; undefined: go on. */
type Verdict = GatewayError | 'answered' | undefined
type Step = (call: Call) => Verdict | Promise<Verdict>

/** The order of the contract, after path and method. */
const STEPS: readonly Step[] = [identify, judgeHeaders, takeBody, parseBody, readShape, checkScope, checkExistence, checkRoute, forward]

function identify(call: Call): Verdict {
  const caller = call.deps.authenticate(call.exchange.request)
  if (caller instanceof GatewayError) return caller
  call.caller = caller
  call.exchange.keyID = caller.keyID
  return undefined
}

function judgeHeaders({ exchange, deps }: Call): Verdict {
  return checkDeclaredBody(exchange.request, deps.maxBodyBytes)
}

async function takeBody(call: Call): Promise<Verdict> {
  const { request, response } = call.exchange
  const body = await readBody(request, response, call.deps.maxBodyBytes)
  if (body === undefined) return 'answered' // the client left
  if (body instanceof GatewayError) return body
  call.bytes = body
  return undefined
}

function parseBody(call: Call): Verdict {
  const { bytes } = call
  if (!isUtf8(bytes)) return notJson('not UTF-8') // else two parsers may read two different texts
  const text = bytes.toString('utf8')
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return notJson('not valid JSON') // the parser's own words quote the body
  }
  const value = asObject(parsed)
  if (!value) return notJson('not an object')
  call.body = { bytes, text, value }
  return undefined
}

function notJson(reason: string): GatewayError {
  return new GatewayError('invalidJson', { reason })
}

function readShape(call: Call): Verdict {
  const asked = call.dialect.readRequest(call.body.value)
  if (asked instanceof GatewayError) return asked
  call.asked = asked
  call.exchange.askedModel = asked.model
  return undefined
}

/** A name that no model has is judged as sent, so that the answer does not tell whether a model outside the scope exists. */
function checkScope(call: Call): Verdict {
  const { deps, caller, asked } = call
  call.entry = deps.models.resolve(caller.record.ns, asked.model)
  if (deps.admits(caller.record, call.entry?.names ?? [asked.model])) return undefined
  return new GatewayError('modelDenied', { model: asked.model })
}

function checkExistence({ entry, asked, exchange }: Call): Verdict {
  if (!entry) return new GatewayError('modelNotFound', { model: asked.model })
  exchange.model = entry.record.served
  return undefined
}

function checkRoute({ entry, asked, dialect }: Call): Verdict {
  return dialect.needsNative && !entry?.hasNative ? new GatewayError('unsupportedRoute', { model: asked.model }) : undefined
}

async function forward(call: Call): Promise<Verdict> {
  const { deps, exchange } = call
  const job = jobOf(call)
  if (!job) return sharedError('internalError')
  try {
    const outcome = await deps.forward(job)
    exchange.error = outcome.error
    return 'answered'
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

function jobOf({ dialect, exchange, entry, asked, body }: Call): ForwardJob | undefined {
  if (!entry) return undefined
  return {
    model: entry,
    askedName: asked.model,
    path: dialect.path,
    stream: asked.stream,
    body,
    request: exchange.request,
    response: exchange.response,
    requestId: exchange.requestId,
    dialect: dialect.stream,
    trace: exchange,
  }
}
