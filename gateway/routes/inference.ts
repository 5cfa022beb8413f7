/**
 * The handler of all model calls, in the order of its steps. The first step that refuses ends the call, and a refused call costs the caller
 * nothing. A dialect supplies the differences between wire formats.
 */
import type { Caller } from '../auth/key-table.ts'
import type { BodyReader, BodyResult } from '../dialects/body-reader.ts'
import { boundaryIn } from '../dialects/form-body.ts'
import type { Dialect, ModelRequest } from '../dialects/dialect.ts'
import type { CountEstimate } from '../dialects/prompt-size.ts'
import type { ReadRequest } from '../dialects/read-request.ts'
import type { RequestBody } from '../dialects/request-body.ts'
import { refusedField } from '../dialects/request-shape.ts'
import type { Translation } from '../dialects/translation/translate-body.ts'
import { GatewayError, orThrow, sharedError } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import { checkDeclaredBody, readBody, refusalToHold } from '../http/read-body.ts'
import { whoseTenant } from '../http/shares.ts'
import { type HeldCall, limitSubjects } from '../limits/call-limits.ts'
import type { LimitSubject } from '../limits/ledger.ts'
import type { ModelRecord } from '#contract/records/model-record.ts'
import type { Engine } from '#contract/values/call-routes.ts'
import type { ForwardJob, Outcome } from '../upstream/forward-job.ts'
import type { ModelEntry } from '../upstream/model-table.ts'
import {
  countBodies,
  isCount,
  isOwnCount,
  isUncounted,
  neededTranslations,
  servesRoute,
  type Translations,
  translationsOf,
} from '../upstream/translated-call.ts'
import { isLoop } from '../upstream/upstream-headers.ts'
import { allowedModel } from './near-model.ts'
import { identify, type RouteDeps, type RouteHandler } from './route.ts'

interface Call {
  readonly exchange: Exchange
  readonly caller: Caller
  /** What limits the call; empty for a key without limits. */
  readonly subjects: readonly LimitSubject[]
  /** Whether its tokens are counted: for limits, or for the usage of its account. */
  readonly isMetered: boolean
  readonly dialect: Dialect
  readonly deps: RouteDeps
}

interface Admitted {
  readonly job: ForwardJob
  readonly held: HeldCall | undefined
  /** The gateway's own count, for a call that asks for the tokens of a message. */
  readonly count: CountEstimate | undefined
}

/** It returns the refusal of a storm, and throws a GatewayError for every other one and for a failure before the first byte. */
export function inference(dialect: Dialect, deps: RouteDeps): RouteHandler {
  return async (exchange) => {
    const caller = enter(exchange, deps) // rows 1 to 4, 24, 25
    const turn = deps.turns.take(caller.turns)
    if (turn) await turn // many requests of this key have arrived at the same time
    if (exchange.response.closed) return undefined // the client has left
    const subjects = limitSubjects(caller)
    const isMetered = dialect.isCharged && (subjects.length > 0 || caller.account !== undefined)
    const call = { exchange, caller, subjects, dialect, deps, isMetered }
    const storm = dialect.isCharged ? deps.limits.refusalUnread({ uid: caller.record.uid, subjects }, exchange.format) : undefined
    if (storm) return counted(storm, call) // row 19 before the body is read, for a client that ignores repeated refusals
    let admitted: Admitted | undefined
    try {
      const admitting = admit(await body(call), call)
      admitted = admitting instanceof Promise ? await admitting : admitting
    } catch (error) {
      throw counted(error, call)
    }
    if (admitted) return forward(admitted, call) // otherwise the client has left
    return undefined
  }
}

/** Forwards an admitted call and charges for it when its answer has ended. */
async function forward({ job, held, count }: Admitted, call: Call): Promise<undefined> {
  const running = call.deps.forward(job)
  const { error, wasSent } = await (held ? settled(running, held) : running)
  if (!error || wasSent) return
  if (count === undefined || !isUncounted(error)) throw error // rows 24, 26 to 34
  const translations = error.row.id === 'backendTimeout' ? undefined : await tokenizerBodies(job, call) // a slow server is not asked again
  await call.deps.forward({ ...job, body: undefined, translations, count })
}

/** The bodies for the tokenizers of servers that do not count by themselves. */
async function tokenizerBodies({ body, model, dialect, exchange }: ForwardJob, call: Call): Promise<Translations | undefined> {
  const needed = countBodies(model)
  if (needed === undefined || body === undefined) return undefined
  const order = { owner: call.caller.owner, translations: needed.options }
  const results = orThrow(await call.deps.bodyReader.translate(body.bytes, dialect, exchange.response, order))
  if (results === undefined) return undefined // the client has left
  return booked({ original: body, translations: orThrow(translationsOf(needed, results)), isOptional: true }, call).translations
}

/** Counts a refusal for the account of the key. @returns the error itself */
function counted<E>(error: E, { caller: { account, record }, exchange, deps }: Call): E {
  if (account !== undefined && error instanceof GatewayError) {
    deps.usage.refused({ account, key: record.uid, model: exchange.model ?? '' }, error.row.id)
  }
  return error
}

/** Only calls of a known key count as admitted, so that no client without a key can fill a gateway. */
function enter(exchange: Exchange, deps: RouteDeps): Caller {
  const caller = identify(exchange, deps)
  if (deps.isOverloaded()) throw sharedError('overloaded')
  orThrow(deps.admitted(exchange, caller.owner))
  return caller
}

/** Reads the body: rows 7 to 9, 40. @returns undefined if the client has left */
function body({ exchange, caller, dialect, deps }: Call): ReturnType<typeof readBody> {
  const { request, response } = exchange
  const { maxBodyBytes: maxBytes, bodies, loop } = deps
  orThrow(checkDeclaredBody(request, maxBytes, dialect.isForm))
  exchange.bodyHold = bodies.open(caller.owner)
  return readBody(request, response, { maxBytes, hold: exchange.bodyHold, loop, whose: whoseTenant(caller.owner.tenant) })
}

/**
 * Rows 10 to 23, 34, 36, 39, 41, 42. No promise unless the body is large or a limit has to be asked about. Only the job holds the body
 * afterwards, so that it does not stay in memory while the answer runs.
 */
function admit(bytes: Awaited<ReturnType<typeof readBody>>, call: Call): Admitted | undefined | Promise<Admitted | undefined> {
  const taken = orThrow(bytes)
  if (taken === undefined) return undefined
  const { exchange, caller, isMetered, dialect, deps } = call
  const boundary = dialect.isForm ? boundaryIn(exchange.request.headers['content-type']) : undefined
  const reading = deps.bodyReader.read(taken, dialect, exchange.response, {
    isMetered: isMetered || !dialect.isCharged,
    boundary,
    owner: caller.owner,
  })
  return reading instanceof Promise ? reading.then((result) => admitRead(result, call)) : admitRead(reading, call)
}

function admitRead(result: BodyResult, call: Call): Admitted | undefined | Promise<Admitted | undefined> {
  const read = orThrow(result) // rows 10, 11, 42; 34
  if (read === undefined) return undefined
  const { exchange, caller, dialect, deps } = call
  const { asked } = read
  exchange.askedModel = asked.model
  const model = admitModel(asked, call) // rows 12 to 14, 41
  exchange.model = model.record.servedName
  exchange.modelNamespace = model.record.namespace
  if (model.refusedFields) orThrow(refusedField(read.fields, model.refusedFields)) // row 11
  if (isLoop(exchange.request.headers)) throw new GatewayError('loopDetected', { model: asked.model }) // row 41
  if (!dialect.isCharged) takeFree(call) // row 19
  const needed = neededTranslations(dialect, model)
  if (needed === undefined) return admitPriced({ read, model }, call)
  const translating = deps.bodyReader.translate(read.body.bytes, dialect, exchange.response, {
    owner: caller.owner,
    translations: needed.options,
  })
  const admitTranslated = (results: TranslationOutcome): Admitted | undefined | Promise<Admitted> => {
    if (results === undefined) return undefined // the client has left
    const translations = orThrow(translationsOf(needed, orThrow(results))) // rows 11, 15
    const bodies = booked({ original: read.body, translations, isOptional: needed.isOptional }, call) // rows 7, 40
    return admitPriced({ read: { ...read, body: bodies.original }, model, translations: bodies.translations }, call)
  }
  return translating instanceof Promise ? translating.then(admitTranslated) : admitTranslated(translating)
}

type TranslationOutcome = Awaited<ReturnType<BodyReader['translate']>>

interface Bodies {
  readonly original: RequestBody
  readonly translations: Translations
  /** Whether a backend takes the original. */
  readonly isOptional: boolean
}

/**
 * Books translated bodies. Without a backend that takes the original, the first one replaces it. Any other is left out if there is no room:
 * its backends are not asked then.
 */
function booked({ original, translations, isOptional }: Bodies, { exchange: { bodyHold }, caller }: Call): Omit<Bodies, 'isOptional'> {
  const whose = whoseTenant(caller.owner.tenant)
  const kept = new Map<Engine, Translation>()
  for (const [engine, translation] of translations) {
    const isReplacing = !isOptional && kept.size === 0
    const bytes = translation.body.bytes.length - (isReplacing ? original.bytes.length : 0)
    const refusal = bodyHold && refusalToHold(bodyHold, bytes, whose)
    if (refusal && isReplacing) throw refusal
    if (!refusal) kept.set(engine, translation)
  }
  const [first] = kept.values()
  return { original: isOptional || !first ? original : first.body, translations: kept }
}

/** A call whose model is known. */
interface ReadCall {
  readonly read: ReadRequest
  readonly model: ModelEntry
  readonly translations?: Translations
}

function admitPriced(known: ReadCall, call: Call): Admitted | Promise<Admitted> {
  const held = call.isMetered ? reserved(known.model.record, known.read, call) : undefined // rows 16 to 23, 36, 43
  return held instanceof Promise ? held.then((hold) => admittedCall(known, hold, call)) : admittedCall(known, held, call)
}

function admittedCall({ read: { asked, body, size }, model, translations }: ReadCall, held: HeldCall | undefined, call: Call): Admitted {
  const { exchange, caller, isMetered, dialect, deps } = call
  const reasonToEnd = (): GatewayError | undefined => deps.reasonToEnd(caller)
  const count = size && isCount(dialect) ? deps.limits.countOf(model.record.uid, size) : undefined
  const job: ForwardJob = {
    ...{ exchange, dialect, model, body, translations, askedName: asked.model, stream: asked.stream, reasonToEnd, isMetered },
    wantsUsage: asked.wantsUsage,
    ...{ choices: asked.choices, prompts: asked.prompts, tenant: caller.owner.tenant },
    ...(count && isOwnCount(model, dialect) && { count }),
    ...(held && { answerHeaders: held.answerHeaders, inputTokens: held.inputTokens, outputTokens: held.outputTokens }),
  }
  return { job, held, count }
}

/** Charges a call when its answer has ended. */
async function settled(running: Promise<Outcome>, held: HeldCall): Promise<Outcome> {
  try {
    const outcome = await running
    held.settle(outcome)
    return outcome
  } catch (bug) {
    held.settleUnknown()
    throw bug
  }
}

/** A call that costs nothing has a small limit of the key alone. */
function takeFree({ caller: { record }, deps }: Call): void {
  const waitMs = deps.freeCalls.take(record.uid)
  if (waitMs === 0) return
  throw new GatewayError('requestsLimited', { whose: 'key', wait: (waitMs / 1_000).toFixed(1) }, { retryAfterMs: waitMs })
}

function lacks({ path }: Dialect): string {
  return `no backend of it serves ${path}. Ask the platform team to set engine or routes of its backends in the ServedModel`
}

function admitModel({ model: name }: ModelRequest, { caller, dialect, deps }: Call): ModelEntry {
  const entry = allowedModel(name, caller.record, deps)
  if (!servesRoute(entry, dialect)) throw new GatewayError('unsupportedRoute', { model: name, reason: lacks(dialect) })
  return entry
}

/** Reserves units for the call. @throws GatewayError, or rejects with it, when a limit is reached or cannot be checked */
function reserved(
  model: ModelRecord,
  { asked, size }: ReadRequest,
  { exchange, caller, subjects, deps }: Call,
): Promise<HeldCall> | HeldCall {
  if (size === undefined) throw new TypeError('a metered call whose body was read without its size')
  const { record, account } = caller
  const decision = deps.limits.reserve({ uid: record.uid, account, subjects, model, asked, size, format: exchange.format })
  return decision instanceof Promise ? decision.then(orThrow) : orThrow(decision)
}
