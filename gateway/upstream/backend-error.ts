/** Turns an unsuccessful answer into an error. Shapes: vLLM, SGLang, llama.cpp, Ollama, TGI, FastAPI, Anthropic. */
import { UnreadableAnswer } from '../dialects/unreadable-answer.ts'
import { isIP } from 'node:net'
import { type ErrorParams, GatewayError, type GatewayErrorOptions, type RowID } from '../errors.ts'
import { asObject, type JsonObject, parseObject } from '../dialects/json-body.ts'

/** An answer, or an error event of a stream, of a backend. */
export interface BackendAnswer {
  /** HTTP status. For an event it is the status that the event names, else 502. */
  readonly status: number
  /** The parsed body, or a plain text; undefined for anything else. */
  readonly body: unknown
  /** Whether the body is HTML, which a proxy has written and no model server. */
  readonly isPage?: boolean
  /** Header `retry-after`. */
  readonly retryAfter?: string | undefined
}

export interface Failure {
  readonly error: GatewayError
  readonly isRetryable: boolean
  /**
   * true: counts towards the ejection of the server. false: counts as a success, because the server worked even if it refused the request;
   * errors of clients must not eject a healthy server. undefined: does not count.
   */
  readonly isBackendFailure: boolean | undefined
}

/** Makes the failure for an answer that is unusable or incomplete. @param reason text for the client after "Backend error" */
export function backendBroken(
  reason: string,
  { isRetryable = false, cause = reason }: { isRetryable?: boolean; cause?: unknown } = {},
): Failure {
  return { error: new GatewayError('backendError', { reason }, { cause }), isRetryable, isBackendFailure: true }
}

export function gatewayFailure(error: GatewayError): Failure {
  return { error, isRetryable: false, isBackendFailure: undefined }
}

/** No file descriptor is left for this process or for its machine: no failure of the server. */
export const OUT_OF_FILES: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE'])

/** Makes the failure for a connection that did not open. It is retryable if the server is to blame. */
export function notConnected(cause: NodeJS.ErrnoException, model: string): Failure {
  if (cause.code === 'UND_ERR_INVALID_ARG') return gatewayFailure(new GatewayError('internalError', {}, { cause }))
  if (OUT_OF_FILES.has(cause.code)) return gatewayFailure(new GatewayError('overloaded', {}, { cause }))
  return { ...gatewayFailure(new GatewayError('noBackend', { model }, { cause })), isRetryable: true }
}

export function timedOut(what: string, isBackendFailure: Failure['isBackendFailure']): Failure {
  return { error: new GatewayError('backendTimeout', {}, { cause: `time-out: ${what}` }), isRetryable: false, isBackendFailure }
}

/** Row 35 without a reason says that the gateway is shutting down: no backend is to blame. */
export function shuttingDown(row: 'notReady' | 'streamBroken' = 'notReady'): GatewayError {
  return new GatewayError(row)
}

/** Errors that clients cause, whatever status the server answers. */
const CAUSED_BY_CLIENT: ReadonlySet<RowID> = new Set([
  'backendRejected',
  'contextOverflow',
  'backendTooLarge',
  'backendModelNotFound', // an error in the ServedModel; the server itself works
  'loopDetected',
])
/** Statuses after which another server may be asked: the server has done no work, or says so. 500 says neither. */
const RETRYABLE: ReadonlySet<number> = new Set([425, 429, 502, 503, 504])
/** Anthropic's status of a busy server. */
const BUSY = 529
/** All other statuses below 400 and from 500 on are row 32, all others between row 29. */
const BY_STATUS: Readonly<Record<number, RowID>> = {
  401: 'backendAuth',
  402: 'backendAuth', // of a provider: the account behind the credential has no money left
  403: 'backendAuth',
  407: 'backendAuth',
  408: 'backendTimeout', // the server has waited too long for the gateway, or for its own work
  413: 'backendTooLarge',
  424: 'backendError', // TGI: the generation has failed
  425: 'backendOverloaded', // the server asks for the same request later
  429: 'backendOverloaded',
  499: 'backendError', // a proxy says that the gateway has left, which it has not
  508: 'loopDetected',
  503: 'backendOverloaded',
  [BUSY]: 'backendOverloaded',
}

/** Classifies an unsuccessful answer. The client never reads hosts, tags, or the backend's own name of the model. */
export function backendFailure(answer: BackendAnswer, names: Names): Failure {
  const { status } = answer
  const error = toError(answer, names)
  const isCausedByClient = CAUSED_BY_CLIENT.has(error.row.id)
  const isRetryable = !isCausedByClient && (RETRYABLE.has(status) || status === BUSY)
  return { error, isRetryable, isBackendFailure: !isCausedByClient && status >= 500 }
}

/** Finds the status that an error event, or an error in a 200, names; 502 without one. */
export function statusIn(body: unknown): number {
  const { code, status, http_status_code: tgi, type } = { ...asObject(body), ...errorFields(body) }
  for (const value of [code, tgi, status]) {
    const number = typeof value === 'string' ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= 400 && number < 600) return number
  }
  return type === 'overloaded_error' ? BUSY : 502
}

/** The first string of `error.message`, `error`, `message`, `detail[0].msg`, `detail`, or a plain text. Nested errors are unwrapped. */
export function messageIn(body: unknown, depth = 0): string | undefined {
  if (typeof body === 'string') return body
  const object = asObject(body)
  if (object === undefined || depth > 3) return undefined
  const { error, message, detail } = object
  const first = Array.isArray(detail) ? asObject(detail[0])?.msg : undefined
  const text = [asObject(error)?.message, error, message, first, detail].find((value) => typeof value === 'string')
  return typeof text === 'string' ? unwrapped(text, depth) : undefined
}

/** What the body of an answer says. */
interface Said {
  /** Empty: nothing. */
  readonly text: string
  readonly fields: JsonObject
}

function toError(answer: BackendAnswer, names: Names): GatewayError {
  const { status, body, retryAfter, isPage = false } = answer
  const said = { text: messageIn(body) ?? '', fields: errorFields(body) }
  const row = rowOf(answer, said)
  const words = wholeReason(said.text, names)
  const options: GatewayErrorOptions = {
    cause: `backend answered ${status}${isPage ? ' with a web page' : ''}${words === undefined ? '' : `: ${words}`}${remedyFor(row, names)}`,
    retryAfterMs: msOf(retryAfter),
    backendStatus: status,
  }
  return new GatewayError(row, paramsOf(row, status, said, names), options)
}

function paramsOf(row: RowID, status: number, { text, fields }: Said, names: Names): ErrorParams {
  const reason = cleanReason(text, names)
  if (row === 'contextOverflow') {
    const overflow = contextOverflow(text, fields)
    return { ...overflowParams(overflow), ...capOverflow(text, overflow), ...overflowWords(reason, fields) }
  }
  if (row === 'backendModelNotFound' || row === 'loopDetected') return { model: names.askedName }
  if (row === 'backendError') return { reason: reason ?? 'it reported a failure' }
  if (row !== 'backendRejected') return {}
  const refusal = NO_SUCH_INPUT.test(text) ? `model ${names.askedName} does not take this input: ${reason}` : rejection(status, reason)
  return { reason: refusal, field: typeof fields.param === 'string' ? fields.param : undefined }
}

/** Some servers count the answer that was asked for, some the prompt alone, which may be short then: such a number would explain nothing. */
function overflowParams({ tokens = 0, maxTokens = Infinity }: Overflow = {}): ErrorParams {
  const known = maxTokens < Infinity ? { maxTokens } : {}
  return tokens > maxTokens ? { ...known, tokens, reason: `However, you requested ${tokens} tokens` } : known
}

/**
 * How servers name the tokens of a prompt and the cap of its answer apart. vLLM's "at least" stands before a number that the cap has cut, so the true
 * prompt may be too long by itself.
 */
const CAP_TEXTS: readonly RegExp[] = [
  /your request has (?<input>\d{1,12}) input tokens \((?<cap>\d{1,12}) > \d+ - \d+\)/i, // vLLM
  /\((?<input>\d{1,12}) in the messages, (?<cap>\d{1,12}) in the completion\)/i, // OpenAI, older vLLM, DeepSeek
  /requested (?<cap>\d{1,12}) output tokens and your prompt contains (?<input>\d{1,12}) input tokens/i, // vLLM since its renderers
  /(?<input>\d{1,12}) tokens from the input messages and (?<cap>\d{1,12}) tokens for the completion/i, // SGLang
  /Given: (?<input>\d{1,12}) `inputs` tokens and (?<cap>\d{1,12}) `max_new_tokens`/i, // TGI
]
/** Tokens that are left for an answer, below which Claude Code does not lower its cap: 3,000, and a margin of 1,000. It has to compact then. */
const MIN_LEFT = 4_000

/** @returns nothing unless the cap alone is too large */
function capOverflow(text: string, { maxTokens = 0 }: Overflow = {}): ErrorParams {
  const found = CAP_TEXTS.map((pattern) => pattern.exec(text)).find((match) => match !== null)?.groups
  if (found === undefined) return {}
  const [input, cap] = [Number(found.input), Number(found.cap)]
  return maxTokens - input >= MIN_LEFT && input + cap > maxTokens ? { input, cap } : {}
}

/** What the server says beside the sizes, unless its words are those of the gateway. */
function overflowWords(words: string | undefined, { n_prompt_tokens: prompt, n_ctx: context }: JsonObject): ErrorParams {
  const isSaid = words === undefined || /^prompt is too long\b/i.test(words)
  return { ...(isSaid ? {} : { words }), promptTokens: count(prompt), contextTokens: count(context) }
}

/** The words of the server. The client sees 400, so the words name any status that says more. */
function rejection(status: number, reason: string | undefined): string | undefined {
  if (status === 400 || status === 422) return reason
  return `The backend answered ${status}${reason === undefined ? '' : `: ${reason}`}`
}

/** For the log: the client may not know the name that the backend has for the model. */
function remedyFor(row: RowID, { upstreamModel }: Names): string {
  return row === 'backendModelNotFound' ? `; it was asked for "${upstreamModel}": check upstreamModel in the ServedModel` : ''
}

/**
 * How servers refuse an image or a sound that their model cannot take: llama.cpp and Ollama (with status 500), vLLM. The server works, and
 * every attempt would be refused.
 */
const NO_SUCH_INPUT =
  /\b(?:image|audio|video) input is not supported|missing data required for image input|is not a multimodal model|at most 0 (?:image|audio|video)/i

/** Finds the row. An overflow may have any status (SGLang answers 500), except that of a refused credential. */
function rowOf({ status, isPage }: BackendAnswer, said: Said): RowID {
  const row = BY_STATUS[status] ?? othersRow(status, isPage)
  if (row === 'backendAuth') return row
  if (contextOverflow(said.text, said.fields) !== undefined) return 'contextOverflow'
  if (NO_SUCH_INPUT.test(said.text)) return 'backendRejected'
  return status === 404 && isAboutModel(said) ? 'backendModelNotFound' : row
}

/** With a page, the request has not come to a server that could refuse it. */
function othersRow(status: number, isPage = false): RowID {
  return status >= 400 && status < 500 && !isPage ? 'backendRejected' : 'backendError'
}

/** Finds the object with type, code and param: `error` if there is one, else the body itself (SGLang). */
function errorFields(body: unknown): JsonObject {
  const object = asObject(body) ?? {}
  return asObject(object.error) ?? object
}

function unwrapped(text: string, depth: number): string | undefined {
  const inner = text.trimStart().startsWith('{') ? parseObject(text) : undefined // undefined too for plain text that begins like JSON
  return inner === undefined ? text : messageIn(inner, depth + 1)
}

function isAboutModel({ text, fields: { code } }: Said): boolean {
  return code === 'model_not_found' || /model/i.test(text)
}

/** Parses a `Retry-After`, which may be a date, into ms of whole seconds. The error bounds the value. */
function msOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined
  const seconds = /^\d+(\.\d+)?$/.test(header.trim()) ? Number(header) : (Date.parse(header) - Date.now()) / 1000
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) * 1_000 : undefined
}

/** Names that the client may not read, and the name of the model to read instead. */
export interface Names {
  readonly askedName: string
  readonly upstreamModel: string
  /** Name of the backend in the ServedModel. */
  readonly backend?: string | undefined
  /** Host of the server. */
  readonly host?: string | undefined
}

const MAX_BYTES = 2048
/** Characters that are read. Every pattern below is bounded, so no text of a backend can block the process. */
const MAX_CHARACTERS = 4 * MAX_BYTES
const TAG = /<\/?[a-z!][^<>]{0,500}>/gi
const URL_LIKE = /\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"'<>)\]]+/gi
/** Characters of which addresses consist. */
const WORD = /[[\]A-Za-z0-9.:-]+/g
const ADDRESS_WITH_PORT = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::\d+)?$/i
const NAME_WITH_PORT = /^(?:localhost|(?=.*[a-z])[a-z0-9-]+\.[a-z0-9.-]+):\d{2,5}$/i
const CLUSTER_NAME = /\.(?:svc|local|internal|localdomain)(?:[.:]|$)/i

/** The first tag of a page. */
const PAGE = /<(?:!doctype|html|head|body|title|pre)\b/i
/** Where the stack of a program begins: Python, Node and Java, Go, Rust, C++. */
const STACK =
  /Traceback \(most recent call last|\bFile "[^"\n]{1,300}", line \d|\bat [\w$.<>/ ]{0,200}\([^()\n]{0,200}:\d{1,7}\)|\n\s{0,20}at [^\n]{1,200}:\d|\bgoroutine \d{1,9} \[|\bstack backtrace:|\n\s{0,20}#\d{1,3} {1,3}0x/i
/** Words as they stand between the signs of a text. A path with spaces loses its first part. */
const PATH_WORD = /[^\s"'`()<>,;=]+/g
const CODE_FILE = /\.(?:pyx?|cc?|cpp|cuh?|h|hpp|rs|go|m?js|ts|java|kt|rb|so|dll|gguf|safetensors)$/i

/**
 * The words of a server for the client: one line of at most 2 KiB without tags, hosts, addresses, paths of files and stacks, with the
 * requested model name.
 * @returns undefined if nothing is left, and for a page
 */
export function cleanReason(text: string, names: Names): string | undefined {
  const start = text.slice(0, MAX_CHARACTERS)
  if (PAGE.test(start)) return undefined
  const stackAt = start.search(STACK)
  const words = stackAt < 0 ? start : start.slice(0, stackAt)
  return withoutHosts(renamed(words, names).replace(URL_LIKE, '[host]').replace(PATH_WORD, withoutPath))
}

/** The same with paths and stacks, for the log. */
function wholeReason(text: string, names: Names): string | undefined {
  return withoutHosts(renamed(text.slice(0, MAX_CHARACTERS), names))
}

function withoutHosts(text: string): string | undefined {
  const clean = text.replace(TAG, ' ').replace(URL_LIKE, '[host]').replace(WORD, withoutHost).replace(/\s+/g, ' ').trim()
  return clean === '' ? undefined : shortened(clean)
}

function renamed(text: string, { askedName, upstreamModel, backend = '', host = '' }: Names): string {
  const named = upstreamModel === askedName || upstreamModel.length < 3 ? text : text.replaceAll(upstreamModel, () => askedName)
  // plain words such as `default` tell nobody anything and stand in many sentences; `withoutHost` finds addresses
  const isHidden = (name: string, sign: RegExp): boolean => name !== askedName && name.length > 2 && sign.test(name)
  const unhosted = isHidden(host, /\.[a-z]/i) ? named.replaceAll(host, '[host]') : named
  return isHidden(backend, /[-\d]/) ? unhosted.replaceAll(backend, '[backend]') : unhosted
}

/** Paths of the API stay. */
function withoutPath(word: string): string {
  const [, path = word, line = '', end = ''] = /^(.*?)((?::\d{1,7}){0,2})([.:!?]?)$/.exec(word) ?? []
  const isAbsolute = /^(?:~?\/(?!v1\/)[^/]+\/|[a-z]:\\)/i.test(path)
  return isAbsolute || (CODE_FILE.test(path) && (line !== '' || path.includes('/'))) ? `[path]${end}` : word
}

function withoutHost(word: string): string {
  const core = word.replace(/[.:]$/, '') // the end of a sentence
  return isHost(core) ? `[host]${word.slice(core.length)}` : word
}

function isHost(word: string): boolean {
  if (word === '[host]') return false
  const [, bracketed, dotted] = ADDRESS_WITH_PORT.exec(word) ?? []
  return isIP(bracketed ?? dotted ?? word) !== 0 || NAME_WITH_PORT.test(word) || CLUSTER_NAME.test(word)
}

function shortened(text: string): string {
  const bytes = Buffer.from(text)
  return bytes.length <= MAX_BYTES ? text : bytes.toString('utf8', 0, MAX_BYTES).replace(/\uFFFD+$/, '')
}

/** Texts of an overflow. Groups: `max` is the size of the context, `tokens` that of the prompt. The first match decides; each has its line in the test. */
const OVERFLOW_TEXTS: readonly RegExp[] = [
  // OpenAI, vLLM
  /maximum context length is (?<max>\d+) tokens[^]{0,120}? for a total of(?: at least)? (?<tokens>\d+) tokens/i,
  /maximum context length (?:is|of) (?<max>\d+)(?: tokens)?(?:[^]{0,80}?(?:requested|resulted in|has|have|contains?|total of)(?: about| at least)? (?<tokens>\d+)(?: input)? tokens)?/i,
  /prompt \((?:total )?length (?<tokens>\d+)\) is longer than the maximum model length of (?<max>\d+)/i,
  /prompt \(total length (?<tokens>\d+)\) is too long to fit into the model \(context length (?<max>\d+)\)/i,
  /input length \((?<tokens>\d+)\) exceeds (?:the )?model's maximum context length \((?<max>\d+)\)/i,
  /max_tokens must be at least 1, got -[1-9]\d/i, // what the prompt leaves of the context; -1 comes from clients that want no cap
  // SGLang
  /input length \((?<tokens>\d+) tokens\) exceeds the maximum allowed length \((?<max>\d+) tokens\)/i,
  /input \((?<tokens>\d+) tokens\) is longer than the model's context length \((?<max>\d+) tokens\)/i,
  // llama.cpp
  /request \((?<tokens>\d+) tokens\) exceeds the available context size \((?<max>\d+) tokens\)/i,
  /exceeds? the available context size/i,
  /context size has been exceeded/i,
  // TGI
  /`?inputs`? must have less than (?<max>\d+) tokens\. Given: (?<tokens>\d+)/i,
  /`?inputs`? tokens \+ `?max_new_tokens`? must be <= (?<max>\d+)\. Given: (?<tokens>\d+)/i,
  // Anthropic
  /prompt is too long(?:: (?<tokens>\d+) tokens > (?<max>\d+) maximum)?/i,
  // Ollama and others
  /(?:input|prompt) (?:length )?(?:exceeds?|exceeded|too long)[^]{0,40}?context (?:length|window|size)/i,
  /exceed(?:s|ed|ing)? (?:the |its |the model's )?(?:max(?:imum)? )?context (?:length|window|size)/i,
]

const OVERFLOW_TYPES: ReadonlySet<unknown> = new Set(['exceed_context_size_error', 'context_length_exceeded'])

type Overflow = Pick<ErrorParams, 'tokens' | 'maxTokens'>

/** @param fields `code` and `type` may name the overflow, `n_prompt_tokens` and `n_ctx` (llama.cpp) have the numbers */
export function contextOverflow(text: string, fields: JsonObject): Overflow | undefined {
  let match: RegExpExecArray | null = null
  for (const pattern of OVERFLOW_TEXTS) match ??= pattern.exec(text)
  if (match === null && !OVERFLOW_TYPES.has(fields.code) && !OVERFLOW_TYPES.has(fields.type)) return undefined
  const { tokens, max }: Readonly<Record<string, string>> = match?.groups ?? {}
  return { tokens: count(fields.n_prompt_tokens ?? tokens), maxTokens: count(fields.n_ctx ?? max) }
}

function count(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : undefined
}

/** The failure of an exception of a relay: the answer cannot be read, or the gateway has a bug. */
export function thrownFailure(cause: unknown): Failure {
  if (cause instanceof UnreadableAnswer) return backendBroken('its answer cannot be read', { cause })
  return gatewayFailure(new GatewayError('internalError', {}, { cause }))
}
