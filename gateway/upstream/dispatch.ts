/** One request to a model: to one server and, while nothing has reached the client, once to another. */
import { GatewayError } from '../errors.ts'
import type { ActiveRequests, Interruptible } from './active-requests.ts'
import { Attempt, type AttemptDeps } from './attempt.ts'
import { CLIENT_GONE, credentialFor, type AttemptResult, type ForwardJob, type Outcome, type CredentialLookup } from './forward-job.ts'
import type { BackendEntry, Target } from './model-entry.ts'
import { pickBackend, type PickRules } from './pick-backend.ts'
import { NO_SLOT } from './slot-list.ts'

export type { ForwardJob, Outcome } from './forward-job.ts'

/** What forwarding needs. */
export interface ForwardDeps extends AttemptDeps {
  readonly credentials: CredentialLookup
  /** At least 0, below 1. */
  readonly random: () => number
  readonly active: ActiveRequests
}

/** The first server and one other: a request is never paid for more than twice, and never waits for a whole fleet. */
const MAX_ATTEMPTS = 2

/**
 * Sends a request to a backend and the answer to the client.
 * @returns when the answer is written (the client may still be reading) or the client has left
 * @throws GatewayError (rows 24, 26 to 33) when nothing has been written; the caller answers
 */
export function forward(job: ForwardJob, deps: ForwardDeps): Promise<Outcome> {
  return new Forwarding(job, deps).run()
}

/** One request with its attempts; itself the rules by which servers are picked for it. */
class Forwarding implements Interruptible, PickRules {
  slot = NO_SLOT
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
    this.#startedAt = deps.wheel.now
    this.nativeOnly = job.path === '/v1/messages'
  }

  isUsable(backend: BackendEntry): boolean {
    return credentialFor(backend, this.#deps.credentials).isUsable
  }

  random(): number {
    return this.#deps.random()
  }

  async run(): Promise<Outcome> {
    const { response, model, askedName } = this.#job
    if (!response.closed) this.#watch()
    let failure: GatewayError | undefined
    while (this.tried.length < MAX_ATTEMPTS && !this.#isInterrupted) {
      const target = pickBackend(this.#job.model, this)
      if (target === undefined) break
      const result = response.destroyed ? CLIENT_LEFT : await this.#try(target)
      if (result.kind !== 'failure') return this.#outcome(target, result)
      failure = moreTelling(failure, result.error)
      if (!result.isRetryable) break
    }
    throw (
      failure ??
      new GatewayError(
        'noBackend',
        { model: askedName },
        { cause: `ServedModel ${model.record.ns}/${model.record.name} has no usable server` },
      )
    )
  }

  /** Ends it now, in order; for a shutdown whose deadline has come. */
  interrupt(): void {
    this.#isInterrupted = true
    this.#attempt?.interrupt()
  }

  /** Until the last byte is sent or the client has left: a shutdown waits for it. */
  #watch(): void {
    const { response } = this.#job
    const { active } = this.#deps
    active.add(this)
    response.on('error', ignoreLateWrite)
    response.on('close', () => {
      active.delete(this)
      this.#attempt?.clientClosed()
    })
  }

  #try(target: Target): Promise<AttemptResult> {
    const { trace } = this.#job
    if (trace) trace.backend = target.backend.name
    this.tried.push(target)
    const { credential } = credentialFor(target.backend, this.#deps.credentials)
    this.#attempt = new Attempt({ job: this.#job, target, startedAt: this.#startedAt }, this.#deps)
    this.#attempt.start(credential)
    return this.#attempt.result
  }

  #outcome(target: Target, result: Exclude<AttemptResult, { kind: 'failure' }>): Outcome {
    const isClientGone = result.kind === 'clientGone'
    return {
      status: isClientGone && !this.#job.response.headersSent ? CLIENT_GONE : 200,
      backend: target.backend.name,
      error: isClientGone ? undefined : result.error,
      isClientGone,
      attempts: this.tried.length,
    }
  }
}

/** A write lost the race with the end of the socket; `close` reports that. Without a listener the process would die of it. */
function ignoreLateWrite(): void {
  return
}

const CLIENT_LEFT = { kind: 'clientGone' } as const satisfies AttemptResult

/** Of two failures the one that a backend spoke is worth more than "could not be reached". */
function moreTelling(earlier: GatewayError | undefined, later: GatewayError): GatewayError {
  return earlier !== undefined && later.row.id === 'noBackend' ? earlier : later
}
