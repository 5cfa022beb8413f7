/**
 * The one handler of all model calls, from top to bottom. The first step that refuses ends the call, and a refusal costs the caller
 * nothing. A dialect fills in what differs.
 */
import type { Caller } from '../auth/caller.ts'
import type { BodyReader } from '../dialects/body-reader.ts'
import type { Dialect, ModelRequest } from '../dialects/dialect.ts'
import type { PromptSize } from '../dialects/prompt-size.ts'
import { GatewayError, orThrow, sharedError } from '../errors.ts'
import type { BodyBudget } from '../http/body-budget.ts'
import type { Exchange } from '../http/exchange.ts'
import { checkDeclaredBody, readBody } from '../http/read-body.ts'
import type { CallLimits, HeldCall } from '../limits/call-limits.ts'
import type { LimitSubject } from '../limits/ledger.ts'
import { limitSubject } from '../limits/limit-subject.ts'
import type { LoopShare } from '../process/loop-share.ts'
import type { RequestTurns } from '../process/request-turns.ts'
import type { KeyRecord } from '../shared/key-record.ts'
import type { ModelRecord } from '../shared/model-record.ts'
import type { ForwardJob, Outcome } from '../upstream/dispatch.ts'
import type { ModelEntry } from '../upstream/model-entry.ts'
import { isLoop } from '../upstream/upstream-headers.ts'
import { type Authenticate, identify } from './identify.ts'
import { modelRefusal, type SuggestedFrom } from './near-model.ts'
import type { RouteHandler } from './route.ts'

/** What model calls need from the rest of the gateway. */
export interface InferenceDeps {
  readonly authenticate: Authenticate
  /** Whether to shed load now (row 25). */
  isOverloaded(): boolean
  /** Keeps the requests of one key from filling a turn of the event loop. */
  readonly turns: Pick<RequestTurns, 'take'>
  /** Counts a call that is taken, until its exchange ends. */
  admitted(exchange: Exchange): void
  /** Why a call of this caller must end now; asked every second while it runs. */
  reasonToEnd(caller: Caller): GatewayError | undefined
  /** Whether a key is allowed to use a model that has these names. */
  admits(record: KeyRecord, names: readonly string[]): boolean
  readonly models: SuggestedFrom['models']
  /** Sends the request to a backend and its answer to the client. */
  forward(job: ForwardJob): Promise<Outcome>
  readonly bodies: BodyBudget
  readonly loop: LoopShare
  readonly bodyReader: Pick<BodyReader, 'read'>
  /** Largest request body, bytes. */
  readonly maxBodyBytes: number
  /** undefined where no key with limits is admitted. */
  readonly limits?: Pick<CallLimits, 'reserve' | 'refusalUnread'> | undefined
}

/**
 * Makes the handler of one dialect. Returns the refusal of a storm, and throws a GatewayError for every other refusal and for a failure of which
 * the client knows nothing yet.
 */
export function inference(dialect: Dialect, deps: InferenceDeps): RouteHandler {
  return async (exchange) => {
    const caller = identify(exchange, deps.authenticate) // rows 1 to 4, 24
    if (deps.isOverloaded()) throw sharedError('overloaded') // row 25
    deps.admitted(exchange) // only calls of a known key count: nobody fills a gateway without one
    const turn = deps.turns.take(caller.turns)
    if (turn) await turn // many requests of this key have come at once
    if (exchange.response.closed) return undefined // the client has left
    const subject = limitSubject(caller.record)
    const storm = subject && deps.limits?.refusalUnread(subject, exchange.format)
    if (storm) return storm // row 19, out of turn, for a client that was refused again and again and goes on
    const admitted = await admit({ exchange, caller, subject, dialect, deps }) // rows 7 to 23, 36, 39 to 42
    if (admitted) await forwarded(admitted, deps) // else the client has left
    return undefined
  }
}

/** Forwards a call until its answer has ended. @throws GatewayError as long as the client has got nothing */
async function forwarded({ job, held }: Admitted, deps: InferenceDeps): Promise<void> {
  const running = deps.forward(job)
  const { error, wasSent } = await (held ? settled(running, held) : running)
  if (error && !wasSent) throw error // rows 24, 26 to 34
  job.exchange.error = error
}

/** Charges a call when it has ended, in whatever way. */
async function settled(running: Promise<Outcome>, held: HeldCall): Promise<Outcome> {
  try {
    const outcome = await running
    held.settle(outcome)
    return outcome
  } catch (bug) {
    held.release()
    throw bug
  }
}

/** A call that may go to a backend, and what it holds of the limits of its key. */
interface Admitted {
  readonly job: ForwardJob
  readonly held: HeldCall | undefined
}

/** A call of a known key. */
interface Call {
  readonly exchange: Exchange
  readonly caller: Caller
  /** Whose limits count; undefined for a key without any. */
  readonly subject: LimitSubject | undefined
  readonly dialect: Dialect
  readonly deps: InferenceDeps
}

/** The body is the job's alone when this function has ended: while an answer runs, nobody else may hold it. */
async function admit(call: Call): Promise<Admitted | undefined> {
  const { exchange, caller, subject, dialect, deps } = call
  const { request, response } = exchange
  orThrow(checkDeclaredBody(request, deps.maxBodyBytes)) // rows 7, 9
  exchange.bodyHold = deps.bodies.open(caller.keyID)
  const bytes = orThrow(await readBody(request, response, { maxBytes: deps.maxBodyBytes, hold: exchange.bodyHold, loop: deps.loop })) // rows 7, 8, 40
  if (bytes === undefined) return undefined
  const isMetered = subject !== undefined
  const reading = deps.bodyReader.read(bytes, dialect, response, isMetered)
  const read = orThrow(reading instanceof Promise ? await reading : reading) // rows 10, 11, 42; 34
  if (read === undefined) return undefined
  const { asked, body, size } = read
  exchange.askedModel = asked.model
  const model = admitModel(asked, caller, { dialect, deps }) // rows 12 to 14, 41
  exchange.model = model.record.servedName
  if (isLoop(request.headers)) throw new GatewayError('loopDetected', { model: asked.model }) // row 41
  const held = subject && (await reserved(subject, { exchange, deps, model: model.record, asked, size })) // rows 16 to 23, 36
  const reasonToEnd = (): GatewayError | undefined => deps.reasonToEnd(caller)
  const job: ForwardJob = {
    ...{ exchange, dialect, model, body, askedName: asked.model, stream: asked.stream, reasonToEnd, isMetered },
    ...(held && { answerHeaders: held.answerHeaders, inputTokens: held.inputTokens }),
  }
  return { job, held }
}

const NOT_NATIVE =
  'no backend of it has messages: Native. Use an OpenAI client with POST /v1/chat/completions, or ask the platform team to set that field in the ServedModel'

/** A name that no model has is checked against the scope as sent, so that the answer does not tell whether a model outside of it exists. */
function admitModel(
  { model: name }: ModelRequest,
  { record }: Caller,
  { dialect, deps }: { dialect: Dialect; deps: InferenceDeps },
): ModelEntry {
  const entry = deps.models.resolve(record.namespace, name)
  if (!deps.admits(record, entry?.names ?? [name])) throw modelRefusal('modelDenied', name, record, deps)
  if (!entry) throw modelRefusal('modelNotFound', name, record, deps)
  if (dialect.needsNative && !entry.hasNative) throw new GatewayError('unsupportedRoute', { model: name, reason: NOT_NATIVE })
  return entry
}

interface Reservation {
  readonly exchange: Exchange
  readonly deps: InferenceDeps
  readonly model: ModelRecord
  readonly asked: ModelRequest
  readonly size: PromptSize | undefined
}

/** @throws GatewayError, or rejects with it, for a limit that is reached or cannot be checked */
function reserved(subject: LimitSubject, { exchange, deps, model, asked, size }: Reservation): Promise<HeldCall> | HeldCall {
  if (deps.limits === undefined || size === undefined) throw sharedError('limitsUnavailable')
  const decision = deps.limits.reserve({ subject, model, asked, size, format: exchange.format })
  return decision instanceof Promise ? decision.then(orThrow) : orThrow(decision)
}
