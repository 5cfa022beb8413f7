/** Sends one request to a model: to one server and, while the client has received nothing, to one more. */
import { GatewayError } from '../errors.ts'
import type { Running } from '../http/exchange.ts'
import { Attempt, type AttemptDeps } from './attempt.ts'
import { shuttingDown } from './backend-error.ts'
import type { AttemptResult, CredentialLookup, ForwardJob, Outcome } from './forward-job.ts'
import type { BackendEntry, ModelEntry, Target } from './model-table.ts'
import { canServe, NO_TRANSLATIONS } from './translated-call.ts'

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
  return new Forwarding(job, deps).start()
}

/** One request with its attempts. It also holds the rules by which its servers are picked. */
class Forwarding implements Running, PickRules {
  readonly route: string
  readonly tried: Target[] = []
  readonly #job: ForwardJob
  readonly #deps: ForwardDeps
  readonly #settled = Promise.withResolvers<Outcome>()
  readonly #startedAt: number
  #attempt: Attempt | undefined = undefined
  #failed: FailedAttempt | undefined = undefined
  readonly #onResult = (result: AttemptResult): void => this.#took(result)

  constructor(job: ForwardJob, deps: ForwardDeps) {
    this.#job = job
    this.#deps = deps
    this.#startedAt = deps.ticker.now
    this.route = job.dialect.route
  }

  isUsable(backend: BackendEntry): boolean {
    return (
      canServe(backend, this.#job.dialect, this.#job.translations ?? NO_TRANSLATIONS) &&
      this.#deps.credentials(backend.credential) !== undefined
    )
  }

  random(): number {
    return this.#deps.random()
  }

  /** A shutdown ends the attempt properly after its deadline. */
  interrupt(): void {
    this.#attempt?.interrupt()
  }

  clientClosed(): void {
    this.#attempt?.clientClosed()
  }

  start(): Promise<Outcome> {
    const { exchange } = this.#job
    if (!exchange.response.closed) {
      exchange.running = this
      exchange.response.on('error', () => undefined) // of a late write; without a listener the process would end
    }
    this.#tryNext()
    return this.#settled.promise
  }

  #tryNext(): void {
    try {
      const mayTry = this.tried.length < MAX_ATTEMPTS && !this.#job.exchange.isInterrupted
      const target = mayTry ? pickBackend(this.#job.model, this) : undefined
      if (target === undefined) this.#settled.resolve(this.#unanswered())
      else if (this.#job.exchange.response.destroyed) this.#took(CLIENT_LEFT)
      else this.#try(target)
    } catch (bug) {
      this.#settled.reject(bug)
    }
  }

  #took(result: AttemptResult): void {
    if (result.kind !== 'failed') return this.#settled.resolve(this.#ended(result))
    this.#failed = bothFailed(this.#failed, result)
    if (result.isRetryable) this.#tryNext()
    else this.#settled.resolve(this.#unanswered())
  }

  /**
   * The work of an earlier server counts if the client has left the later one too soon. The exchange gets its error here, in the call that
   * has written the last frame, because log and metrics read the error when the answer closes, which a promise may not precede.
   */
  #ended(result: Exclude<AttemptResult, FailedAttempt>): Outcome {
    const { exchange } = this.#job
    if (result.kind !== 'answered')
      return { usage: result.usage ?? this.#failed?.usage, wasSent: exchange.response.headersSent, error: undefined }
    exchange.error = result.error
    return { usage: result.usage, wasSent: true, error: result.error }
  }

  #try(target: Target): void {
    this.#job.exchange.backend = target.backend.name // set before the answer, because the log also needs it for failures
    this.tried.push(target)
    this.#attempt = new Attempt(this.#job, target, { startedAt: this.#startedAt, onResult: this.#onResult }, this.#deps)
    this.#attempt.start(this.#deps.credentials(target.backend.credential) ?? undefined)
  }

  #unanswered(): Outcome {
    if (this.#failed) return { usage: this.#failed.usage, wasSent: false, error: this.#failed.error }
    const { model, askedName, exchange } = this.#job
    const cause = `ServedModel ${model.record.namespace}/${model.record.name} has no usable server`
    const error = exchange.isInterrupted ? shuttingDown() : new GatewayError('noBackend', { model: askedName }, { cause })
    return { usage: undefined, wasSent: false, error }
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

/** Rules for the choice of a server: backends by weight, endpoints by load. Random numbers and state are passed in. */
export interface PickRules {
  /** Servers that this request was already sent to. */
  readonly tried: readonly Target[]
  /** Whether this pod can use a backend for the call: false if the backend does not serve its route, or the pod lacks the credential. */
  isUsable(backend: BackendEntry): boolean
  random(): number
}

/**
 * Picks a server. It allocates nothing, because it runs for every request. Ejected servers are used only if no other is left: an error of
 * an ejected server is no worse than an error of the gateway, and the server may work again.
 * @returns undefined if no server is left
 */
export function pickBackend(entry: ModelEntry, rules: PickRules): Target | undefined {
  return pick(entry, rules, true) ?? pick(entry, rules, false)
}

/** @param onlyUp leaves out ejected servers */
function pick({ backends }: ModelEntry, rules: PickRules, onlyUp: boolean): Target | undefined {
  let weights = 0
  let chosen: BackendEntry | undefined
  for (const backend of backends) {
    if (!isOpen(backend, rules, onlyUp)) continue
    weights += backend.weight
    // a later backend replaces the choice with the probability of its share of the weights so far: each is left with its share of all
    if (chosen === undefined || rules.random() * weights >= weights - backend.weight) chosen = backend
  }
  return chosen && leastLoaded(chosen.targets, rules, onlyUp)
}

function isOpen(backend: BackendEntry, rules: PickRules, onlyUp: boolean): boolean {
  if (backend.weight <= 0 || !rules.isUsable(backend)) return false
  for (const target of backend.targets) if (isLeft(target, rules, onlyUp)) return true
  return false
}

function isLeft(target: Target, { tried }: PickRules, onlyUp: boolean): boolean {
  return (target.health.isUp || !onlyUp) && !tried.includes(target)
}

/** Starts at a random endpoint, so that equally loaded endpoints share the requests. */
function leastLoaded(targets: readonly Target[], rules: PickRules, onlyUp: boolean): Target | undefined {
  const start = targets.length < 2 ? 0 : Math.floor(rules.random() * targets.length)
  let best: Target | undefined
  for (let i = 0; i < targets.length; i++) {
    const target = targets[(start + i) % targets.length]
    if (target === undefined || !isLeft(target, rules, onlyUp)) continue
    if (best === undefined || target.health.inFlight < best.health.inFlight) best = target
  }
  return best
}
