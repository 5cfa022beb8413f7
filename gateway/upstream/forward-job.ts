/** What the parts of a forwarded request hand to each other: the job, its outcome, and the answer of a backend. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Dialect } from '../dialects/dialect.ts'
import type { AnswerOrder, WholeAnswer } from '../dialects/whole-answer.ts'
import type { CountEstimate } from '../dialects/prompt-size.ts'
import type { RequestBody } from '../dialects/request-body.ts'
import type { Usage } from '../dialects/usage.ts'
import type { GatewayError } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import type { BackendAnswer, Failure } from './backend-error.ts'
import type { BackendEntry, ModelEntry, Target } from './model-table.ts'
import type { TranslatedAttempt, Translations } from './translated-call.ts'

/** An admitted request on its way to a backend. */
export interface ForwardJob {
  readonly exchange: Exchange
  readonly dialect: Dialect
  readonly model: ModelEntry
  /** `model` as the client wrote it. Answers contain this name. */
  readonly askedName: string
  readonly stream: boolean
  /** Whether the client has asked for the usage of its stream. */
  readonly wantsUsage?: boolean
  /** Dropped when no second attempt is possible, because an answer may run for minutes. */
  body: RequestBody | undefined
  /** Bodies for servers that speak another format than the client. Dropped with `body`. */
  translations?: Translations | undefined
  /** Of a count of tokens that the gateway answers itself. */
  readonly count?: CountEstimate | undefined
  /** Account, or namespace, of the key: the salt of its cache follows from it. */
  readonly tenant?: string
  /** Numbers of answers and of prompts of the request; default: one. */
  readonly choices?: number
  readonly prompts?: number
  /** Tokens of the prompt, in case the backend does not report them. Without this estimate the bytes of the body decide. */
  readonly inputTokens?: number | undefined
  /** Tokens that the answer of such a call usually has, in case it ends before its size is known. */
  readonly outputTokens?: number | undefined
  /** false: the call has no limits. Servers are then not asked for its usage, and events are not searched for it. */
  readonly isMetered?: boolean | undefined
  /** The gateway's own headers of a successful answer besides the request id: name, value, name, value … */
  readonly answerHeaders?: readonly string[]
  /** Returns the reason to end a running call: its key no longer works. Called every second. */
  readonly reasonToEnd?: (() => GatewayError | undefined) | undefined
}

export function timeoutsOf({ dialect, model }: ForwardJob): ModelEntry['record']['timeouts'] {
  return dialect.timeouts ?? model.record.timeouts
}

/** How a request ended. */
export interface Outcome {
  /** As reported, else estimated, even if it ended early; undefined: no backend has worked on it, or the job is not metered. */
  readonly usage: Usage | undefined
  /** Whether the answer has begun; the client then already knows of an error. Otherwise the caller answers the error. */
  readonly wasSent: boolean
  /** The error; undefined for a complete answer, and when the client left. */
  readonly error: GatewayError | undefined
}

/** Result of one attempt, with the work of its server. `failed`: the client has received nothing. */
export type AttemptResult =
  | { readonly kind: 'answered'; readonly error: GatewayError | undefined; readonly usage: Usage | undefined }
  | { readonly kind: 'clientGone'; readonly usage: Usage | undefined }
  | ({ readonly kind: 'failed'; readonly usage: Usage | undefined } & Pick<Failure, 'error' | 'isRetryable'>)

/** @returns null if the backend needs none; undefined if this pod has none for the addresses of the backend, and so cannot use the backend */
export type CredentialLookup = (credential: BackendEntry['credential']) => string | null | undefined

/** Handles the body of a backend's answer: relays it as a whole, relays it as a stream, or reads it as an error. */
export interface AnswerRelay {
  /** Whether bytes have reached the client. Then no other backend can be asked and the status is fixed. */
  readonly isOpen: boolean
  /**
   * The cost of the answer so far; undefined if the backend has done no work, or the call is not metered.
   * @param inputTokens estimate of the prompt, in case the backend does not report it
   */
  usage(inputTokens: number): Usage | undefined
  data(chunk: Buffer): void
  end(): void
  /** Called when the answer cannot continue; only while open. @returns the error as the client received it */
  broken(error: GatewayError): GatewayError
}

/** The functions that a relay may call. `Attempt` implements them. */
export interface RelayPort {
  readonly job: ForwardJob
  readonly target: Target
  /** Whether the backend has another name for the model, so that answers must be renamed. */
  readonly isRenamed: boolean
  /** Of an attempt whose server speaks another format than the client. */
  readonly translated: TranslatedAttempt | undefined
  /** Whether the gateway requested the usage of the stream and the client did not: the client must not receive it. */
  readonly addsUsage: boolean
  /** Size of the largest plain answer, bytes, that is read whole to be written in another form. */
  readonly maxAnswerBytes: number
  /** Called when the answer has begun. From then on the time-out for silence counts, not that for the first byte. */
  began(): void
  /** Starts the answer with status 200, these headers, and the gateway's own. */
  open(headers: readonly string[]): void
  write(bytes: Buffer): void
  /** Ends the answer. @param last its rest; a text has only ASCII */
  finish(last?: Buffer | string): void
  /** Writes a plain answer in another form: at once if it is small. @param done is not called if the attempt has ended before */
  writeAnswer(bytes: Buffer, order: AnswerOrder, done: (answer: WholeAnswer | GatewayError) => void): void
  /** Lets go of the body of the request. No second attempt is possible then. */
  dropBody(): void
  /** Ends the attempt as a failure. Before the first byte another backend may be asked. */
  fail(failure: Failure): void
  /** `fail` with an unsuccessful answer, or an error event, of the backend. */
  refused(answer: BackendAnswer): void
}

export interface AnswerHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Whether the body is decompressed, so that its length is not that of the header. */
  readonly isDecoded: boolean
}
