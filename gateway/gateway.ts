/**
 * The parts of one gateway process, put together; nothing listens here. `main.ts` gives it Redis and two ports, `standalone/` memory and one.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Express } from 'express'
import { createApp } from './app.ts'
import { authenticate } from './auth/authenticate.ts'
import { KeyTable } from './auth/key-table.ts'
import { KeyringFiles } from './auth/keyring-files.ts'
import { KeyringWatch } from './auth/keyring-watch.ts'
import { registerAuthMetrics } from './auth/metrics.ts'
import { admits } from './auth/model-access.ts'
import type { ProjectionSource } from './auth/projection-source.ts'
import { RevisionFollower } from './auth/revision-follower.ts'
import { UpstreamTokens } from './auth/upstream-tokens.ts'
import type { GatewayConfig } from './config.ts'
import { createAccessLog } from './http/access-log.ts'
import type { HealthDeps } from './http/health.ts'
import { ErrorSender } from './http/send-error.ts'
import { createMetrics } from './metrics.ts'
import { sleep, type Clock } from './shared/clock.ts'
import type { Log } from './shared/log.ts'
import { Upstream } from './upstream/upstream.ts'

/** The settings that matter inside; ports and Redis are the business of who composes. */
export type GatewaySettings = Pick<
  GatewayConfig,
  'podName' | 'keyringDir' | 'coldStart' | 'accessLog' | 'maxBodyBytes' | 'apiKeyHeader' | 'forwardedHeaders'
>

/** What a process gives its gateway. */
export interface GatewayDeps {
  readonly settings: GatewaySettings
  readonly source: ProjectionSource
  readonly clock: Clock
  readonly log: Log
  readonly version: string
  /** PEM of more certificate authorities for https backends. */
  readonly extraCa?: string | undefined
  /** Backends on loopback: standalone only. */
  readonly allowLoopback?: boolean
  /** Health and metrics on the API's own port: standalone only. */
  readonly healthOnApi?: boolean
}

const LOOK_EVERY_MS = 50
/** Answers that were cut at the deadline get so long to reach their clients. */
const FLUSH_MS = 1_000

/** One gateway. */
export class Gateway {
  readonly app: Express
  readonly errors: ErrorSender
  readonly health: HealthDeps
  /** The tables and where they come from. */
  readonly follower: RevisionFollower
  readonly keys: KeyTable
  readonly #clock: Clock
  readonly #upstream: Upstream
  readonly #watch: KeyringWatch | undefined
  #draining = false
  #inFlight = 0

  constructor(deps: GatewayDeps) {
    const { settings, source, clock, log } = deps
    const tokens = new UpstreamTokens(log)
    const metrics = createMetrics()
    this.#clock = clock
    this.errors = new ErrorSender()
    this.keys = new KeyTable()
    this.#upstream = new Upstream({
      addresses: { allowLoopback: deps.allowLoopback ?? false },
      tokens: (file, sum) => tokens.token(file, sum),
      clock,
      forwarded: settings.forwardedHeaders,
      extraCa: deps.extraCa,
    })
    this.follower = new RevisionFollower({
      source,
      tables: { key: this.keys, model: this.#upstream.models },
      process: `${settings.podName}/${randomBytes(6).toString('base64url')}`,
      version: deps.version,
      clock,
      log,
      backends: () => this.#upstream.unhealthy(),
      random: Math.random,
      onLoaded: () => this.#watch?.reapply(),
    })
    this.#watch = keyringWatch(deps, this.keys, this.#upstream, this.follower, tokens)
    registerAuthMetrics(metrics.registry, this.keys, this.follower)
    this.health = {
      isReady: () => this.#isServing(),
      metrics: {
        contentType: metrics.contentType,
        render: () => {
          metrics.setRevision(this.follower.position?.rev ?? 0)
          return metrics.render()
        },
      },
    }
    const auth = { keys: this.keys, projection: this.follower, now: () => clock.now(), apiKeyHeader: settings.apiKeyHeader }
    this.app = createApp({
      errors: this.errors,
      authenticate: (request: IncomingMessage) => authenticate(request, auth),
      admits,
      models: this.#upstream.models,
      forward: (job) => this.#upstream.forward(job),
      maxBodyBytes: settings.maxBodyBytes,
      isServing: () => this.#isServing(),
      metrics: {
        started: () => {
          this.#inFlight += 1
          metrics.started()
        },
        finished: (exchange) => {
          this.#inFlight -= 1
          metrics.finished(exchange)
        },
      },
      accessLog: createAccessLog(settings.accessLog, log),
      ...(deps.healthOnApi ? { health: this.health } : {}),
    })
  }
}
