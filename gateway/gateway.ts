/** Composes the parts of one gateway process. `main.ts` adds Redis and two ports, `standalone/` adds memory and one port. */
import type { RequestListener } from 'node:http'
import { createApp } from './app.ts'
import { AccountLinks } from './auth/account-links.ts'
import { authenticate, reasonToEnd } from './auth/authenticate.ts'
import { RefusalLog } from './auth/refusal-log.ts'
import { KeyTable } from './auth/key-table.ts'
import { RecordMap } from './auth/record-map.ts'
import { KeyringFiles } from './projection/keyring-files.ts'
import { KeyringWatch } from './projection/keyring-watch.ts'
import type { ProjectionSource } from './projection/projection-source.ts'
import { RevisionFollower } from './projection/revision-follower.ts'
import { BackendCredentials } from './upstream/backend-credentials.ts'
import type { GatewaySettings } from './config.ts'
import type { BodyReader } from './dialects/body-reader.ts'
import { createAccessLog } from './http/access-log.ts'
import { Cors } from './http/cors.ts'
import { ActiveExchanges } from './http/active-exchanges.ts'
import { BodyBudget, type BodyLimits } from './http/body-budget.ts'
import type { Exchange } from './http/exchange.ts'
import type { HealthDeps } from './http/health.ts'
import { CallLimits } from './limits/call-limits.ts'
import { FreeCalls } from './limits/free-calls.ts'
import type { Ledger } from './limits/ledger.ts'
import { LoadGuard } from './http/load-guard.ts'
import { ErrorSender } from './http/send-error.ts'
import { UsageMeter } from './usage/usage-meter.ts'
import { UsageReporter, type UsageStore } from './usage/usage-reporter.ts'
import { createMetrics, type GatewayMetrics, type LedgerFacts } from './metrics.ts'
import { type AccountRecord, decodeAccountRecord } from '#contract/records/account-record.ts'
import { decodePlanRecord, type PlanRecord } from '#contract/records/plan-record.ts'
import { sleep, type Clock } from '#platform/clock.ts'
import { LoopShare } from '#platform/loop-share.ts'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { RequestTurns } from './http/request-turns.ts'
import { Upstream } from './upstream/upstream.ts'

interface GatewayDeps {
  readonly settings: GatewaySettings
  readonly source: ProjectionSource
  readonly clock: Clock
  readonly log: Log
  readonly version: string
  /** Random per start, so that a restarted pod counts as another process. The ledger of a cluster uses the same value. */
  readonly process: string
  /** Computed by `bodyLimits` from the memory that this process may use. */
  readonly bodyLimits: BodyLimits
  readonly bodyReader: Pick<BodyReader, 'start' | 'read' | 'translate' | 'answer' | 'stop'>
  /** Computed by `callsWithin` from the files that this process may open; default: `MAX_CALLS`. */
  readonly maxCalls?: number
  /** Counts limits and budgets. The gateway closes it. */
  readonly ledger: Ledger & LedgerFacts
  /** Receives what keys with an account have used. */
  readonly usage: UsageStore
  readonly extraCa?: string | undefined
  /** Standalone only: backends may be on loopback. */
  readonly allowLoopback?: boolean
  /** Standalone only: health and metrics are on the API's port. */
  readonly healthOnApi?: boolean
  /** Further fields of the access log: standalone only, which knows the names of ApiKeys. */
  readonly accessFields?: (exchange: Exchange) => Readonly<Record<string, unknown>>
}

/** When no model call has arrived for this long, ms, Services and ingresses no longer send requests to a leaving pod. */
const QUIET_MS = 1_000

/** Time limit for returning holds and leases to the store at shutdown, ms. */
const LEDGER_CLOSE_MS = 1_000

/** One gateway. Call `start`, then serve `app`; on shutdown call `leave`, `drain` and `stop`. */
export class Gateway {
  readonly app: RequestListener
  readonly errors: ErrorSender
  readonly health: HealthDeps
  readonly keys: KeyTable
  readonly accounts: RecordMap<AccountRecord>
  readonly plans = new RecordMap<PlanRecord>(decodePlanRecord)
  readonly follower: RevisionFollower
  readonly #deps: GatewayDeps
  readonly #upstream: Upstream
  readonly #watch: KeyringWatch | undefined
  readonly #active: ActiveExchanges
  readonly #metrics: GatewayMetrics
  readonly #loop: LoopShare
  readonly #meter: UsageMeter
  readonly #reporter: UsageReporter
  readonly #load: LoadGuard
  #epoch: string | undefined
  #isLeaving = false
  #draining = false

  constructor(deps: GatewayDeps) {
    const credentials = new BackendCredentials(deps.log)
    this.#deps = deps
    this.#active = new ActiveExchanges(deps.maxCalls)
    this.#load = new LoadGuard(() => this.#active.calls, deps.maxCalls === undefined ? {} : { maxCalls: deps.maxCalls })
    this.keys = new KeyTable((uid, how) => deps.ledger[how](uid))
    this.accounts = new RecordMap(decodeAccountRecord, (uid) => {
      const account = this.accounts.get(uid)
      if (account) deps.ledger.changed(account.ledger)
    })
    this.errors = new ErrorSender((error) => this.#metrics.refused(error))
    this.#loop = new LoopShare(deps.clock)
    this.#meter = new UsageMeter(deps.process, deps.clock)
    const outage = new OutageLog('usage of accounts', deps.log, deps.clock)
    this.#reporter = new UsageReporter({ meter: this.#meter, store: deps.usage, clock: deps.clock, outage })
    this.#upstream = new Upstream({
      addresses: { allowLoopback: deps.allowLoopback ?? false, clusterNamespaces: deps.settings.clusterAddressNamespaces },
      credentials: (wanted) => wanted && credentials.credential(wanted),
      forwarded: deps.settings.forwardHeaders,
      extraCa: deps.extraCa,
      loop: this.#loop,
      answers: deps.bodyReader,
      threads: deps.settings.uvThreadpoolSize,
      maxAnswerBytes: deps.settings.maxTranslatedAnswerBytes,
    })
    this.follower = this.#makeFollower()
    this.#watch = this.#makeWatch(credentials)
    const { keys, follower } = this
    this.#metrics = createMetrics({
      requestsInFlight: () => this.#active.size,
      keys,
      follower,
      models: this.#upstream.models,
      ledger: deps.ledger,
    })
    this.health = { isReady: () => follower.ready && this.#isServing() && !this.#isLeaving, metrics: this.#metrics }
    this.app = this.#makeApp()
  }

  /** Resolves when the mounted folder has been read and the worker for large bodies runs. `health` reports readiness. */
  async start(): Promise<void> {
    this.#reporter.start()
    await Promise.all([this.#deps.bodyReader.start(), this.#follow()])
  }

  /**
   * Reports "not ready" from now on, but still serves requests; each answer closes its connection. This is needed because Services and
   * ingresses send requests for some time after the pod began to leave, and reuse connections that were open before. Lasts at least
   * `forMs`, then until no model call runs and none has arrived for a second, but at most `drainMs` longer. With 0 for `forMs` it returns
   * at once.
   * @returns the ms of `drainMs` that are left
   */
  async leave(forMs: number, drainMs: number): Promise<number> {
    const { clock } = this.#deps
    this.#isLeaving = true
    if (forMs === 0) return drainMs
    const quietMs = Math.min(QUIET_MS, forMs)
    const deadlineMs = clock.monotonic() + forMs + drainMs
    await sleep(clock, forMs - quietMs)
    let taken: number
    do {
      taken = this.#active.callsTaken
      await sleep(clock, quietMs)
    } while ((this.#active.calls > 0 || this.#active.callsTaken !== taken) && clock.monotonic() < deadlineMs)
    return Math.max(0, deadlineMs - clock.monotonic())
  }

  /** Refuses new requests with row 24. After `graceMs` running ones end with an error in their own format. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true
    this.follower.drain()
    await this.#active.drain(graceMs, this.#deps.clock)
  }

  /** Stops all parts. Afterwards this process no longer counts as live. */
  async stop(): Promise<void> {
    this.#draining = true
    await this.#watch?.stop()
    await this.follower.stop()
    await this.#upstream.close()
    await Promise.all([this.#deps.ledger.close(LEDGER_CLOSE_MS), this.#reporter.stop()])
    await this.#deps.bodyReader.stop()
    this.#load.stop()
  }

  async #follow(): Promise<void> {
    await this.#watch?.start()
    this.follower.start()
  }

  #isServing(): boolean {
    return this.follower.loaded && !this.#draining
  }

  #makeFollower(): RevisionFollower {
    const { settings, source, clock, log, version, process } = this.#deps
    return new RevisionFollower({
      source,
      tables: { plan: this.plans, account: this.accounts, key: this.keys, model: this.#upstream.models },
      process: `${settings.podName}/${process}`,
      version,
      clock,
      log,
      backends: () => this.#upstream.unhealthy(),
      random: Math.random,
      onLoaded: () => this.#loaded(),
    })
  }

  /** Another data set means that Redis lost all data, limits included, or that it is another Redis. */
  #loaded(): void {
    this.#watch?.reapply()
    const epoch = this.follower.position?.epoch
    if (this.#epoch !== undefined && epoch !== this.#epoch) this.#deps.ledger.reportAgain()
    this.#epoch = epoch
  }

  #makeWatch(credentials: BackendCredentials): KeyringWatch | undefined {
    const { settings, clock, log } = this.#deps
    if (settings.keyringDir === undefined) return undefined
    return new KeyringWatch({
      files: new KeyringFiles(settings.keyringDir),
      keys: this.keys,
      models: this.#upstream.models,
      accounts: this.accounts,
      plans: this.plans,
      credentials,
      follower: this.follower,
      coldStart: settings.coldStart === 'Keyring',
      clock,
      log,
    })
  }

  #makeApp(): RequestListener {
    const { settings, clock, log, healthOnApi, bodyLimits, bodyReader, ledger } = this.#deps
    const { tokenHold, corsOrigins, forwardHeaders } = settings
    const accounts = new AccountLinks(this.accounts, this.plans)
    const auth = {
      keys: this.keys,
      accounts,
      projection: this.follower,
      now: () => clock.now(),
      apiKeyHeader: settings.apiKeyHeader,
      refusals: new RefusalLog(log, clock),
    }
    return createApp({
      errors: this.errors,
      authenticate: (request) => authenticate(request, auth),
      reasonToEnd: (caller) => reasonToEnd(caller, auth),
      models: this.#upstream.models,
      forward: (job) => this.#upstream.forward(job),
      isOverloaded: () => this.#load.isOverloaded,
      active: this.#active,
      bodies: new BodyBudget(bodyLimits),
      loop: this.#loop,
      turns: new RequestTurns(),
      freeCalls: new FreeCalls(settings.countTokensPerMinute, clock),
      limits: new CallLimits({ ledger, clock, tokenHold, onDecision: this.#metrics.decided, usage: this.#meter }),
      usage: this.#meter,
      ledger,
      bodyReader,
      admitted: (exchange, owner) => this.#active.admit(exchange, owner),
      maxBodyBytes: settings.maxBodyBytes,
      isServing: () => this.#isServing(),
      isLeaving: () => this.#isLeaving,
      metrics: this.#metrics,
      accessLog: createAccessLog(settings.accessLog, log, Math.random, this.#deps.accessFields),
      cors: corsOrigins.size > 0 ? new Cors(corsOrigins, forwardHeaders) : undefined,
      ...(healthOnApi ? { health: this.health } : {}),
    })
  }
}
