/** Sends one request to a model: to one server and, while the client has received nothing, to one more. */
import { GatewayError } from '../errors.ts'
import type { Usage } from '../dialects/usage.ts'
import type { Interruptible } from '../http/exchange.ts'
import { Attempt, type AttemptDeps, shuttingDown } from './attempt.ts'
import { credentialFor, type AttemptResult, type CredentialLookup, type ForwardJob, type Outcome } from './forward-job.ts'
import type { BackendEntry, Target } from './model-entry.ts'
import { pickBackend, type PickRules } from './pick-backend.ts'

export type { ForwardJob, Outcome } from './forward-job.ts'

/** What a dispatch needs. */
export interface ForwardDeps extends AttemptDeps {
  readonly credentials: CredentialLookup
  /** Returns a number in [0, 1). */
  readonly random: () => number
}

/** So a request never costs more than twice its price and never waits for a whole fleet (decision 19). */
const MAX_ATTEMPTS = 2

/** Resolves when the answer is written, the client has left, or no backend answered (rows 24, 26 to 33). Rejects only on a bug. */
export function forward(job: ForwardJob, deps: ForwardDeps): Promise<Outcome> {
  return new Forwarding(job, deps).run()
}

/** One request with its attempts. It also holds the rules by which its servers are picked. */
class Forwarding implements Interruptible, PickRules {
  readonly nativeOnly: boolean
  readonly tried: Target[] = []
  readonly #job: ForwardJob
  readonly #deps: ForwardDeps
  readonly #startedAt: number
  #attempt: Attempt | undefined = undefined
  #isInterrupted = false

  constructor(job: ForwardJob, deps: ForwardDeps) {
    this.#job = job
    this.#deps = deps
    this.#startedAt = deps.ticker.now
    this.nativeOnly = job.dialect.needsNative
  }

  isUsable(backend: BackendEntry): boolean {
    return credentialFor(backend, this.#deps.credentials) !== undefined
  }

  random(): number {
    return this.#deps.random()
  }

  interrupt(): void {
    this.#isInterrupted = true
    this.#attempt?.interrupt()
  }

  async run(): Promise<Outcome> {
    const { response } = this.#job.exchange
    if (!response.closed) this.#watch()
    let failed: FailedAttempt | undefined
    while (this.tried.length < MAX_ATTEMPTS && !this.#isInterrupted) {
      const target = pickBackend(this.#job.model, this)
      if (target === undefined) break
      const result = response.destroyed ? CLIENT_LEFT : await this.#try(target)
      if (result.kind !== 'failed') return this.#ended(result, failed?.usage)
      failed = bothFailed(failed, result)
      if (!result.isRetryable) break
    }
    return failed ? { usage: failed.usage, wasSent: false, error: failed.error } : this.#unsent()
  }

  /** @param spent the work of an earlier server, which counts if the client has left the later one too soon */
  #ended(result: Exclude<AttemptResult, FailedAttempt>, spent: Usage | undefined): Outcome {
    if (result.kind === 'answered') return { usage: result.usage, wasSent: true, error: result.error }
    return { usage: result.usage ?? spent, wasSent: this.#job.exchange.response.headersSent, error: undefined }
  }

  /** Runs one attempt until the last byte is sent or the client has left. A shutdown ends it properly after its deadline. */
  #watch(): void {
    const { exchange } = this.#job
    exchange.running = this
    exchange.response.on('error', () => undefined) // of a late write; without a listener the process would end
    exchange.response.on('close', () => this.#attempt?.clientClosed())
  }

  #try(target: Target): Promise<AttemptResult> {
    this.#job.exchange.backend = target.backend.name // set before the answer, because the log also needs it for failures
    this.tried.push(target)
    this.#attempt = new Attempt(this.#job, target, this.#startedAt, this.#deps)
    this.#attempt.start(credentialFor(target.backend, this.#deps.credentials) ?? undefined)
    return this.#attempt.result
  }

  #unsent(): Outcome {
    return { usage: undefined, wasSent: false, error: this.#isInterrupted ? shuttingDown() : this.#noServer() }
  }

  #noServer(): GatewayError {
    const { model, askedName } = this.#job
    const cause = `ServedModel ${model.record.namespace}/${model.record.name} has no usable server`
    return new GatewayError('noBackend', { model: askedName }, { cause })
  }
}

const CLIENT_LEFT = { kind: 'clientGone', usage: undefined } as const satisfies AttemptResult

type FailedAttempt = Extract<AttemptResult, { kind: 'failed' }>

/**
 * Joins two failures. The answer of a backend is more specific than "could not be reached". The client gets one answer, so the work of one
 * server is charged.
 */
function bothFailed(earlier: FailedAttempt | undefined, later: FailedAttempt): FailedAttempt {
  if (earlier === undefined) return later
  return { ...later, error: later.error.row.id === 'noBackend' ? earlier.error : later.error, usage: later.usage ?? earlier.usage }
}
