/**
 * The one handler of all model calls. What is checked, and in which order, are the lists `BEFORE_BODY` and `WITH_BODY`: the first step that
 * refuses answers, and a refusal costs the caller nothing. A dialect fills in what differs.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import type { Caller } from '../auth/caller.ts'
import type { InferenceDialect, ModelRequest } from '../dialects/dialect.ts'
import { hasTooManyParts } from '../dialects/json-structure.ts'
import { GatewayError, sharedError } from '../errors.ts'
import type { Answer, Exchange } from '../http/exchange.ts'
import type { LoadGuard } from '../http/load-guard.ts'
import { checkDeclaredBody, readBody } from '../http/read-body.ts'
import type { ErrorSender } from '../http/send-error.ts'
import type { KeyRecord } from '../shared/key-record.ts'
import type { ForwardJob, Outcome } from '../upstream/dispatch.ts'
import type { ModelEntry } from '../upstream/model-entry.ts'
import { asObject, type JsonBody } from '../dialects/json-body.ts'

/** What model calls need from the rest of the gateway. */
export interface InferenceDeps {
  readonly errors: ErrorSender
  /** Who is asking, or rows 1 to 4 and 24. Never waits. */
  authenticate(request: IncomingMessage): Caller | GatewayError
  /** Says when to shed load (row 25), and counts the calls that are taken; without it nothing is shed. */
  readonly load?: Pick<LoadGuard, 'isOverloaded' | 'began' | 'ended'>
  /** Why a call of this caller must end now; asked every second while it runs. */
  reasonToEnd?(caller: Caller): GatewayError | undefined
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
    const refusal = firstRefusal(BEFORE_BODY, call) ?? (await takeBody(call)) ?? firstRefusal(WITH_BODY, call) ?? (await forward(call))
    if (refusal instanceof GatewayError) deps.errors.send(exchange, refusal)
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

/** @returns why the call is refused; undefined: go on */
type Step = (call: Call) => GatewayError | undefined

/** The order of the contract, after path and method: what needs no body first, then the body, then what is in it; then it is forwarded. */
const BEFORE_BODY: readonly Step[] = [identify, shedLoad, judgeHeaders]
const WITH_BODY: readonly Step[] = [parseBody, readShape, checkScope, checkExistence, checkRoute]

function firstRefusal(steps: readonly Step[], call: Call): GatewayError | undefined {
  for (const step of steps) {
    const refusal = step(call)
    if (refusal) return refusal
  }
  return undefined
}

function identify(call: Call): GatewayError | undefined {
  const caller = call.deps.authenticate(call.exchange.request)
  if (caller instanceof GatewayError) return caller
  call.caller = caller
  call.exchange.keyID = caller.keyID
  return undefined
}

/** Only calls of a known key count: nobody fills a gateway without one. */
function shedLoad({ deps: { load }, exchange: { response } }: Call): GatewayError | undefined {
  if (!load) return undefined
  if (load.isOverloaded) return sharedError('overloaded')
  load.began()
  response.on('close', () => load.ended())
  return undefined
}

function judgeHeaders({ exchange, deps }: Call): GatewayError | undefined {
  return checkDeclaredBody(exchange.request, deps.maxBodyBytes)
}

/** @returns 'gone' when the client left, and there is nobody to answer */
async function takeBody(call: Call): Promise<GatewayError | 'gone' | undefined> {
  const { request, response } = call.exchange
  const body = await readBody(request, response, call.deps.maxBodyBytes)
  if (body === undefined) return 'gone'
  if (body instanceof GatewayError) return body
  call.bytes = body
  return undefined
}

function parseBody(call: Call): GatewayError | undefined {
  const { bytes } = call
  if (!isUtf8(bytes)) return notJson('not UTF-8') // else two parsers may read two different texts
  if (hasTooManyParts(bytes)) return notJson('too many objects, arrays and fields')
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

function readShape(call: Call): GatewayError | undefined {
  const asked = call.dialect.readRequest(call.body.value)
  if (asked instanceof GatewayError) return asked
  call.asked = asked
  call.exchange.askedModel = asked.model
  return undefined
}

/** A name that no model has is judged as sent, so that the answer does not tell whether a model outside the scope exists. */
function checkScope(call: Call): GatewayError | undefined {
  const { deps, caller, asked } = call
  call.entry = deps.models.resolve(caller.record.ns, asked.model)
  if (deps.admits(caller.record, call.entry?.names ?? [asked.model])) return undefined
  return new GatewayError('modelDenied', { model: asked.model })
}

function checkExistence({ entry, asked, exchange }: Call): GatewayError | undefined {
  if (!entry) return new GatewayError('modelNotFound', { model: asked.model })
  exchange.model = entry.record.served
  return undefined
}

function checkRoute({ entry, asked, dialect }: Call): GatewayError | undefined {
  return dialect.needsNative && !entry?.hasNative ? new GatewayError('unsupportedRoute', { model: asked.model }) : undefined
}

/** @returns why nothing could be sent to the client; undefined when it was answered or has left */
async function forward(call: Call): Promise<GatewayError | undefined> {
  const { deps, exchange } = call
  const job = jobOf(call)
  if (!job) return sharedError('internalError')
  try {
    exchange.error = (await deps.forward(job)).error
    return undefined
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

function jobOf({ deps, caller, dialect, exchange, entry, asked, body }: Call): ForwardJob | undefined {
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
    reasonToEnd: () => deps.reasonToEnd?.(caller),
    trace: exchange,
  }
}
