/**
 * The error catalogue: every error that a client can receive, as data. All errors for clients are made here. `http/send-error.ts` alone
 * turns a GatewayError into bytes. A test holds the table in `docs/contract.md` equal to this one.
 *
 * Placeholders in messages: `<id>` is the model as the client wrote it; the others are `<field>`, `<reason>`, `<state>`, `<allow>`,
 * `<target>`, `<tokens>`, `<input>`, `<cap>`, `<max>`, `<words>`, `<budget>`, `<whose>` and `<wait>`. Text of clients and backends passes through `safeText`.
 */

/** Error format of a client. The path alone decides it, never a header. */
export type ErrorFormat = 'openai' | 'anthropic'

/** The values of a message. None is ever a Credential, a hash, a list of models, the name or address of a backend, or a stack. */
export interface ErrorParams {
  readonly model?: string | undefined
  readonly field?: string | undefined
  /** A text of the gateway, or a cleaned text of a backend. */
  readonly reason?: string | undefined
  /** Row 4 only. */
  readonly state?: 'revoked' | 'expired' | 'suspended' | undefined
  /** Row 6 only: value of the `Allow` header. */
  readonly allow?: string | undefined
  /** Row 5 only: method and path, for example `POST /v1/embeddings`. Never a query, and no part of a path that may be a Credential. */
  readonly target?: string | undefined
  /** Row 30: tokens of the prompt, if the backend named them. */
  readonly tokens?: number | undefined
  /** Row 30: size of the context window in tokens, if the backend named it. */
  readonly maxTokens?: number | undefined
  /** Row 30, if the prompt fits and a smaller cap would: tokens of the prompt, and the cap of the answer. */
  readonly input?: number | undefined
  readonly cap?: number | undefined
  /** Row 30: the cleaned words of the backend. */
  readonly words?: string | undefined
  /** Row 30: `n_prompt_tokens` and `n_ctx` of the backend (llama.cpp), which clients read beside the message. */
  readonly promptTokens?: number | undefined
  readonly contextTokens?: number | undefined
  /** Rows 16, 36 and 43: name of the budget. */
  readonly budget?: string | undefined
  /** Rows 16 and 18 to 22, 25, 36, 40 and 43: who owns the limit. */
  readonly whose?: 'key' | 'account' | 'plan' | 'namespace' | undefined
  /** Rows 19 to 21 and 36: seconds after which the request would be admitted if it were alone, for example `7.4`. */
  readonly wait?: string | undefined
}

/**
 * The limit that refused a call. Programs read it as `error.metadata`, in both formats. `needed` and `left` are whole numbers; money is a
 * decimal number as text. Both are null if they are unknown, or are money that several keys share: always for a balance.
 */
export interface RefusedLimitDetails {
  readonly limit: 'requests_per_minute' | 'tokens_per_minute' | 'concurrent_requests' | 'budget' | 'balance'
  /** Name of the budget. */
  readonly budget?: string | undefined
  readonly unit?: 'Currency' | 'Tokens' | undefined
  readonly owner: 'key' | 'account' | 'plan'
  readonly needed: number | string | null
  readonly left: number | string | null
  /** RFC 3339: when the limit is whole again. null: never, or at an unknown time. */
  readonly resetsAt: string | null
}

/** Who caused the error and has to act. `backend`: a model server, or the lack of one. */
type CausedBy = 'client' | 'gateway' | 'backend'

type ByFormat<T> = Readonly<Record<ErrorFormat, T>>

/** One row as it is written below. */
interface RowText {
  /** Number in docs/contract.md. */
  readonly number: number
  /** Errors that clients cause are counted and not logged, because a client can cause any number. */
  readonly causedBy: CausedBy
  readonly when: string
  readonly status: number | ByFormat<number>
  /** `param` is null, a fixed name, or `<field>` for the name of the wrong field. */
  readonly openai: readonly [type: string, code?: string | null, param?: string]
  /** One of Anthropic's closed list of error types. */
  readonly anthropic: string
  /** Beginning of the message. Clients may match it. */
  readonly starts: string | ByFormat<string>
  /** Replaces `starts` if all its values are known. */
  readonly better?: ByFormat<string | undefined>
  /** Replaces `starts` while one of its values is unknown; by default, the constant part of `starts` does. */
  readonly bare?: string | ByFormat<string>
  readonly then?: string | ByFormat<string>
  /** N, W, C and `R=<seconds>`, separated by spaces; `docs/contract.md` explains them. */
  readonly headers?: string
}

export interface ErrorRow extends Pick<RowText, 'number' | 'causedBy' | 'when' | 'anthropic'> {
  /** Stable name, used in metrics and logs. */
  readonly id: RowID
  readonly status: ByFormat<number>
  readonly openai: { readonly type: string; readonly code: string | null; readonly param: string | null }
  readonly starts: ByFormat<string>
  readonly better: ByFormat<string | undefined> | undefined
  readonly bare: ByFormat<string>
  readonly then: ByFormat<string>
  /** N: `x-should-retry: false`, the SDKs make one request. */
  readonly noRetry: boolean
  /** W: `WWW-Authenticate: Bearer`. */
  readonly challenge: boolean
  /** C: `Connection: close`. */
  readonly close: boolean
  /** R: seconds for `Retry-After`, unless the error sets another time. undefined: no such header. */
  readonly retryAfterSeconds: number | undefined
}

const IR = 'invalid_request_error'
const SE = 'server_error'
const SU = 'service_unavailable_error'
const AU = 'authentication_error'
const NF = 'not_found_error'
const AE = 'api_error'
const IQ = 'insufficient_quota'
const RL = 'rate_limit_exceeded'
const BUSY = { openai: 503, anthropic: 529 } as const
const OVERFLOW = {
  openai: "This model's maximum context length is <max> tokens",
  anthropic: 'prompt is too long: <tokens> tokens > <max> maximum', // Claude Code matches it and compacts
} as const
/** Claude Code matches these words and lowers `max_tokens`. Compacting would not help. */
const CAP_OVERFLOW = {
  openai: undefined,
  anthropic:
    'input length and `max_tokens` exceed context limit: <input> + <cap> > <max>, decrease input length or `max_tokens` and try again',
} as const
const OVERFLOW_BARE = { openai: "This model's maximum context length is exceeded", anthropic: 'prompt is too long for this model' } as const

/* One row of the document is one line here, so no formatter. */
// prettier-ignore
const ROWS = {
  noCredential: { number: 1, causedBy: 'client', when: 'no credential', status: 401, openai: [IR, 'invalid_api_key'], anthropic: AU, starts: 'Authentication Error: no API key was sent', then: '; <reason>', headers: 'N W' },
  malformedKey: { number: 2, causedBy: 'client', when: 'a credential that cannot be a key', status: 401, openai: [IR, 'invalid_api_key'], anthropic: AU, starts: 'Authentication Error: malformed API key', then: '; <reason>', headers: 'N W' },
  unknownKey: { number: 3, causedBy: 'client', when: 'unknown or deleted key', status: 401, openai: [IR, 'invalid_api_key'], anthropic: AU, starts: 'Authentication Error: unknown API key', then: '; <reason>', headers: 'N W' },
  inactiveKey: { number: 4, causedBy: 'client', when: 'revoked, expired or suspended key', status: 401, openai: [IR, 'invalid_api_key'], anthropic: AU, starts: 'Authentication Error: API key <state>', then: '; <reason>', headers: 'N W' },
  unknownPath: { number: 5, causedBy: 'client', when: 'unknown path', status: 404, openai: [IR], anthropic: NF, starts: 'Invalid URL', then: ' (<target>): <reason>', headers: 'N' },
  wrongMethod: { number: 6, causedBy: 'client', when: 'wrong method', status: 405, openai: [IR], anthropic: IR, starts: 'Method not allowed', then: ': use <allow>', headers: 'N' },
  bodyTooLarge: { number: 7, causedBy: 'client', when: 'body over the size limit', status: 413, openai: [IR], anthropic: 'request_too_large', starts: 'Request too large', then: ': <reason>', headers: 'N C' },
  bodyTimeout: { number: 8, causedBy: 'client', when: 'body not complete in time', status: 408, openai: [IR], anthropic: 'timeout_error', starts: 'Request body timed out', then: ': the headers may take 10 s and the whole request 60 s', headers: 'C' },
  bodiesFull: { number: 40, causedBy: 'gateway', when: 'bodies of all keys fill the gateway', status: BUSY, openai: [SU, 'server_is_overloaded'], anthropic: 'overloaded_error', starts: 'Gateway overloaded', then: ': too many request bodies are being read', headers: 'R=1 C' },
  tooManyBodies: { number: 40, causedBy: 'client', when: 'bodies of one key, account or namespace fill their part', status: 429, openai: [IR, 'too_many_bodies'], anthropic: 'rate_limit_error', starts: 'Too many large requests', then: ' of this <whose>: send the next one when one of them has its answer', headers: 'R=1 C' },
  unsupportedBody: { number: 9, causedBy: 'client', when: 'a body of a type that the route does not take, or a compressed one', status: 415, openai: [IR], anthropic: IR, starts: 'Unsupported Content-', then: '<reason>', headers: 'N' },
  invalidJson: { number: 10, causedBy: 'client', when: 'body is not a JSON object', status: 400, openai: [IR, 'invalid_json'], anthropic: IR, starts: 'Invalid JSON in request body', then: ': <reason>', headers: 'N' },
  invalidForm: { number: 10, causedBy: 'client', when: 'body is a form that parsers read differently', status: 400, openai: [IR, 'invalid_form'], anthropic: IR, starts: 'Invalid form in request body', then: ': <reason>', headers: 'N' },
  invalidField: { number: 11, causedBy: 'client', when: 'field missing or of the wrong type', status: 400, openai: [IR, null, '<field>'], anthropic: IR, starts: 'Invalid request: <field>', then: ' <reason>', headers: 'N' },
  modelChoice: { number: 42, causedBy: 'client', when: 'a field that makes a server choose another model', status: 400, openai: [IR, null, '<field>'], anthropic: IR, starts: 'Invalid request: <field>', then: ' could select a model other than the authorised one; remove it', headers: 'N' },
  modelDenied: { number: 12, causedBy: 'client', when: 'model outside the scope of the key', status: 403, openai: ['permission_error', 'key_model_access_denied', 'model'], anthropic: 'permission_error', starts: 'key not allowed to access model <id>', then: '; <reason>', headers: 'N' },
  modelNotFound: { number: 13, causedBy: 'client', when: 'allowed name, no such model', status: 404, openai: [IR, 'model_not_found', 'model'], anthropic: NF, starts: 'model not found: <id>', then: '; <reason>', headers: 'N' },
  unsupportedRoute: { number: 14, causedBy: 'client', when: 'no backend of the model serves the route', status: 400, openai: [IR, 'unsupported_route', 'model'], anthropic: IR, starts: 'model <id> does not serve this route', then: '; <reason>', headers: 'N' },
  untranslatable: { number: 15, causedBy: 'client', when: 'a field that cannot be translated for the model server', status: 400, openai: [IR, 'unsupported_value', '<field>'], anthropic: IR, starts: 'Unsupported: <field>', then: ' <reason>', headers: 'N' },
  loopDetected: { number: 41, causedBy: 'gateway', when: 'request came through gateways too often', status: 508, openai: [SE, 'loop_detected'], anthropic: AE, starts: 'Loop detected', then: ': a backend of model <id> is a gateway that sends the request back', headers: 'N' },
  budgetSpent: { number: 16, causedBy: 'client', when: 'a budget is used up', status: 402, openai: [IQ, IQ], anthropic: 'billing_error', starts: 'Budget exhausted: budget "<budget>" of this <whose>', then: '<reason>', headers: 'N' },
  budgetTooSmall: { number: 43, causedBy: 'client', when: 'a call that may cost more than is left of a budget', status: 402, openai: [IQ, IQ], anthropic: 'billing_error', starts: 'This call does not fit the budget', then: ': <reason>', headers: 'N' },
  balanceExhausted: { number: 17, causedBy: 'client', when: 'the balance of the account is used up', status: 402, openai: [IQ, IQ], anthropic: 'billing_error', starts: 'Balance exhausted', headers: 'N' },
  balanceTooSmall: { number: 44, causedBy: 'client', when: 'a call that may cost more than is left of the balance', status: 402, openai: [IQ, IQ], anthropic: 'billing_error', starts: 'This call does not fit the balance', then: ' of its account; lower max_tokens or shorten the prompt', headers: 'N' },
  noPrice: { number: 18, causedBy: 'client', when: 'a budget of money or a balance, and a model without a price', status: 402, openai: [IQ, IQ], anthropic: 'billing_error', starts: 'Budget cannot be enforced: model <id> has no price', headers: 'N' },
  requestsLimited: { number: 19, causedBy: 'client', when: 'requests per minute are used up', status: 429, openai: ['requests', RL], anthropic: 'rate_limit_error', starts: 'Rate limit reached: requests per minute', then: ' of this <whose>. Please try again in <wait>s.', headers: 'R=1' },
  tokensLimited: { number: 20, causedBy: 'client', when: 'tokens per minute are used up', status: 429, openai: ['tokens', RL], anthropic: 'rate_limit_error', starts: 'Rate limit reached: tokens per minute', then: ' of this <whose>; a smaller max_tokens holds fewer of them. Please try again in <wait>s.', headers: 'R=1' },
  concurrencyLimited: { number: 21, causedBy: 'client', when: 'too many requests at the same time', status: 429, openai: ['requests', RL], anthropic: 'rate_limit_error', starts: 'Rate limit reached: concurrent requests', then: ' of this <whose>. Please try again in <wait>s.', headers: 'R=5' },
  requestTooLarge: { number: 22, causedBy: 'client', when: 'a request larger than all tokens per minute', status: 400, openai: [IR, 'request_too_large'], anthropic: IR, starts: 'Request too large for the tokens-per-minute limit', then: ' of this <whose>', headers: 'N' },
  limitsUnavailable: { number: 23, causedBy: 'gateway', when: 'limits cannot be checked', status: 503, openai: [SU, 'limits_unavailable'], anthropic: AE, starts: 'Service unavailable: limits cannot be checked', headers: 'R=5' },
  budgetHeld: { number: 36, causedBy: 'client', when: 'running requests hold the rest of a budget or of the balance', status: 429, openai: ['requests', RL], anthropic: 'rate_limit_error', starts: 'Budget is held by running requests', then: ': <reason>. Please try again in <wait>s.', headers: 'R=5' },
  notReady: { number: 24, causedBy: 'gateway', when: 'starting or shutting down', status: 503, openai: [SU, 'not_ready'], anthropic: AE, starts: 'Service unavailable', then: ': the gateway is starting or shutting down', headers: 'R=1 C' },
  tooManyCalls: { number: 25, causedBy: 'client', when: 'calls of one key, account or namespace fill their part', status: BUSY, openai: [SU, 'too_many_calls'], anthropic: 'overloaded_error', starts: 'Too many calls', then: ' of this <whose> are under way: send the next one when one of them has ended', headers: 'R=1' },
  overloaded: { number: 25, causedBy: 'gateway', when: 'the gateway sheds load', status: BUSY, openai: [SU, 'server_is_overloaded'], anthropic: 'overloaded_error', starts: 'Gateway overloaded', headers: 'R=1 C' },
  noBackend: { number: 26, causedBy: 'backend', when: 'no healthy backend', status: 503, openai: [SU, 'no_backend'], anthropic: AE, starts: 'No backend available for model <id>', headers: 'R=2' },
  backendOverloaded: { number: 27, causedBy: 'backend', when: 'backend answers 429 or 503', status: BUSY, openai: [SU, 'server_is_overloaded'], anthropic: 'overloaded_error', starts: 'Backend overloaded', headers: 'R=1' },
  backendAuth: { number: 28, causedBy: 'backend', when: 'backend refuses our credential', status: 502, openai: [SE, 'upstream_auth'], anthropic: AE, starts: 'Backend error', then: ': it refused the credential of the gateway', headers: 'N' },
  backendRejected: { number: 29, causedBy: 'client', when: 'backend answers 400, 422 or another 4xx', status: 400, openai: [IR, null, '<field>'], anthropic: IR, starts: '<reason>', bare: 'The backend rejected the request', headers: 'N' },
  contextOverflow: { number: 30, causedBy: 'client', when: 'prompt longer than the context', status: 400, openai: [IR, 'context_length_exceeded', 'messages'], anthropic: IR, starts: OVERFLOW, better: CAP_OVERFLOW, bare: OVERFLOW_BARE, then: { openai: '. <reason>', anthropic: '. The model server says: <words>' }, headers: 'N' },
  backendTooLarge: { number: 31, causedBy: 'client', when: 'backend answers 413', status: 413, openai: [IR], anthropic: 'request_too_large', starts: 'Request too large', then: ' for the backend', headers: 'N' },
  backendModelNotFound: { number: 39, causedBy: 'backend', when: 'backend does not know the model', status: 404, openai: [IR, 'model_not_found', 'model'], anthropic: NF, starts: 'model <id> is not available on its backend', then: '; ask the platform team to check upstreamModel in its ServedModel', headers: 'N' },
  backendError: { number: 32, causedBy: 'backend', when: 'backend answers otherwise, resets or sends what cannot be read', status: 502, openai: [SE, 'upstream_error'], anthropic: AE, starts: 'Backend error', then: ': <reason>' },
  backendTimeout: { number: 33, causedBy: 'backend', when: 'backend too slow', status: 504, openai: [SE, 'upstream_timeout'], anthropic: 'timeout_error', starts: 'Backend timed out' },
  malformedRequest: { number: 37, causedBy: 'client', when: 'not HTTP, or a target or Host that cannot be read', status: 400, openai: [IR], anthropic: IR, starts: 'Malformed HTTP request', then: ': <reason>', headers: 'N C' },
  headersTooLarge: { number: 38, causedBy: 'client', when: 'request headers over 16 KiB', status: 431, openai: [IR], anthropic: IR, starts: 'Request headers too large', then: ': all headers together may have 16 KiB', headers: 'N C' },
  internalError: { number: 34, causedBy: 'gateway', when: 'a bug of the gateway', status: 500, openai: [SE, 'internal_error'], anthropic: AE, starts: 'Internal error' },
  streamBroken: { number: 35, causedBy: 'backend', when: 'failure after the first byte: one error frame', status: 200, openai: [SE, 'upstream_error'], anthropic: AE, starts: 'Backend error: <reason>', bare: 'The gateway is shutting down; this answer is not complete' },
} as const satisfies Record<string, RowText>

/** Stable name of a row. */
export type RowID = keyof typeof ROWS

/** The whole catalogue in the order of docs/contract.md. */
export const ERROR_ROWS: readonly ErrorRow[] = (Object.keys(ROWS) as RowID[]).map((id) => readRow(id, ROWS[id]))

const BY_ID = Object.fromEntries(ERROR_ROWS.map((row) => [row.id, row])) as Readonly<Record<RowID, ErrorRow>>

export interface GatewayErrorOptions {
  /** The internal cause, for the log. Clients never see it. */
  readonly cause?: unknown
  /** Overrides the `Retry-After` of a row that has one, in ms. The client gets 1 to 60,000 ms, and the seconds rounded up. */
  readonly retryAfterMs?: number | undefined
  /** Headers besides those of the row: name, value, name, value … */
  readonly headers?: readonly string[] | undefined
  /** Status of the answer of a backend. Clients see the status of the row. */
  readonly backendStatus?: number | undefined
  readonly metadata?: RefusedLimitDetails | undefined
}

const NO_HEADERS: readonly string[] = Object.freeze([])

export class GatewayError extends Error {
  readonly row: ErrorRow
  readonly params: ErrorParams
  /** Whole ms, 1 to 60,000; undefined where the row has no `Retry-After`. */
  readonly retryAfterMs: number | undefined
  /** Headers besides those of the row: name, value, name, value … */
  readonly headers: readonly string[]
  /** `error.metadata` of the answer. */
  readonly metadata: RefusedLimitDetails | undefined
  readonly backendStatus: number | undefined
  /** Whether `constantError` has made it, so that its bytes may be kept. */
  isConstant = false

  constructor(id: RowID, params: ErrorParams = {}, options: GatewayErrorOptions = {}) {
    const row = BY_ID[id]
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0 // a stack takes half the time of a refusal and has no information; the stack of a bug is in `cause`
    super(errorMessage(row, params, 'openai'), options.cause === undefined ? undefined : { cause: options.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'GatewayError'
    this.row = row
    this.params = params
    const ms = row.retryAfterSeconds === undefined ? undefined : (options.retryAfterMs ?? row.retryAfterSeconds * 1_000)
    this.retryAfterMs = ms === undefined ? undefined : Math.min(60_000, Math.max(1, Math.ceil(ms)))
    this.headers = options.headers ?? NO_HEADERS
    this.metadata = options.metadata
    this.backendStatus = options.backendStatus
  }
}

/** Unwraps the result of a step. @throws GatewayError if the result is one; the app answers errors that routes throw */
export function orThrow<T>(decision: T | GatewayError): T {
  if (decision instanceof GatewayError) throw decision
  return decision
}

const SHARED = new Map<RowID, GatewayError>()

/** An error that a module makes once and sends many times: a refusal then allocates nothing, and its bytes are built once. */
export function constantError(id: RowID, params: ErrorParams = {}): GatewayError {
  const made = new GatewayError(id, params)
  made.isConstant = true
  return made
}

/** The constant error of a row without any values. */
export function sharedError(id: RowID): GatewayError {
  const known = SHARED.get(id) ?? constantError(id)
  SHARED.set(id, known)
  return known
}

/** Builds the message of an answer in the given format. The rest of a message is left out when one of its values is missing. */
export function errorMessage(row: ErrorRow, params: ErrorParams, format: ErrorFormat): string {
  const starts = fill(row.better?.[format], params) ?? fill(row.starts[format], params) ?? row.bare[format]
  return starts + (fill(row.then[format], params) ?? '')
}

/** Builds the field `param` of OpenAI's format: a name, or null. */
export function errorParam(row: ErrorRow, params: ErrorParams): string | null {
  if (row.openai.param !== '<field>') return row.openai.param
  return params.field === undefined ? null : safeText(params.field)
}

const MAX_ECHO_CHARACTERS = 128
// oxlint-disable-next-line no-control-regex -- removing them is the point
const CONTROL = /[\u0000-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g
/** The text that `safeText` writes in place of a Credential. */
export const HIDDEN_CREDENTIAL = 'sk-…'
/** Own keys however cut, and imported ones of any form, where a word begins: `task-classifier-large` is a model. */
const CREDENTIAL_LIKE = /(?<![0-9A-Za-z])sk-[^\s"\\]+|sk-hg1[0-9A-Za-z]*/g

/** Makes foreign text safe to send or log: it has no control characters and no Credential. @param max characters, not bytes */
export function safeText(text: string, max: number = MAX_ECHO_CHARACTERS): string {
  const clipped = text.length > 4 * max ? text.slice(0, 4 * max) : text // the replacements below then read a bounded text
  const clean = clipped.replace(CONTROL, '').replace(CREDENTIAL_LIKE, HIDDEN_CREDENTIAL)
  return clean.length <= max ? clean : Array.from(clean).slice(0, max).join('') // cuts between code points
}

const MAX_REASON_CHARACTERS = 2048
/** Words on which the client Continue repeats a permanently refused request. */
const RETRY_WORDS = /overloaded|malformed json|"code": ?429/gi

/** The placeholders that have another name than their value. */
const PARAM_OF: Readonly<Record<string, keyof ErrorParams>> = { id: 'model', max: 'maxTokens' }

/** Fills the placeholders of a template. @returns undefined when a value is missing */
function fill(template: string | undefined, params: ErrorParams): string | undefined {
  if (!template?.includes('<')) return template
  let complete = true
  const text = template.replace(
    /<(id|field|reason|state|allow|target|tokens|input|cap|max|words|budget|whose|wait)>/g,
    (_, name: string) => {
      const value = placeholder(name, params)
      if (value === undefined) complete = false
      return value ?? ''
    },
  )
  return complete ? text : undefined
}

function placeholder(name: string, params: ErrorParams): string | undefined {
  const value = params[PARAM_OF[name] ?? (name as keyof ErrorParams)]
  if (value === undefined) return undefined
  return name === 'reason' || name === 'words'
    ? safeText(String(value), MAX_REASON_CHARACTERS).replace(RETRY_WORDS, '…')
    : safeText(String(value))
}

function readRow(id: RowID, { number, causedBy, when, anthropic, ...text }: RowText): ErrorRow {
  const flags = (text.headers ?? '').split(' ')
  const retryAfter = flags.find((flag) => flag.startsWith('R='))
  const [type, code = null, param = null] = text.openai
  return {
    ...{ id, number, causedBy, when, anthropic },
    status: perFormat(text.status),
    openai: { type, code, param },
    starts: perFormat(text.starts),
    better: text.better,
    bare: perFormat(text.bare ?? (typeof text.starts === 'string' ? text.starts.replace(/:? ?<.*$/, '') : text.starts)),
    then: perFormat(text.then ?? ''),
    noRetry: flags.includes('N'),
    challenge: flags.includes('W'),
    close: flags.includes('C'),
    retryAfterSeconds: retryAfter === undefined ? undefined : Number(retryAfter.slice(2)),
  }
}

function perFormat<T extends string | number>(value: T | ByFormat<T>): ByFormat<T> {
  return typeof value === 'object' ? value : { openai: value, anthropic: value }
}
