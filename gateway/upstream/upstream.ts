/** Composes the upstream side of a gateway process: models, health, connections, forwarding. */
import { systemClock } from '#platform/clock.ts'
import type { Acknowledgement } from '#contract/records/revision-log.ts'
import { type AddressPolicy, rulesIn } from '#contract/values/backend-address.ts'
import { BackendHealth, tcpProbe } from './backend-health.ts'
import { forward, type ForwardDeps } from './dispatch.ts'
import type { ForwardJob, Outcome } from './forward-job.ts'
import { ModelTable } from './model-table.ts'
import { guardedLookup, NameLookup, type SystemLookup } from './name-lookup.ts'
import { Ticker } from './ticker.ts'
import { answerCount } from './token-count.ts'
import { UpstreamPools } from './upstream-pools.ts'

export interface UpstreamOptions extends Pick<ForwardDeps, 'credentials' | 'forwarded' | 'loop' | 'answers'> {
  /** Rules for addresses of backends. Only standalone allows loopback. */
  readonly addresses: AddressPolicy
  /** PEM of additional certificate authorities for https backends. */
  readonly extraCa?: string | undefined
  readonly random?: () => number
  /** Size of the largest plain answer, bytes, that is read whole: to be translated, or for a client that has asked for a stream. */
  readonly maxAnswerBytes?: number
  /** Threads of libuv; default: 4. */
  readonly threads?: number
  /** Resolves names by the system, unless a test passes its own. */
  readonly systemLookup?: SystemLookup
  /** Length of a tick, ms; time-outs count ticks. Tests make it short. */
  readonly tickMs?: number
}

const CONNECT_TIMEOUT_MS = 2_000
/** As the setting `MAX_TRANSLATED_ANSWER_BYTES`. */
const MAX_ANSWER_BYTES = 32 * 2 ** 20
/** Threads of libuv that look-ups of names leave to files and compression. */
const OTHER_THREADS = 2
/** Threads of libuv, unless the environment says otherwise. */
const DEFAULT_THREADS = 4

export class Upstream {
  readonly models: ModelTable
  readonly #deps: ForwardDeps
  readonly #ticker: Ticker
  readonly #pools: UpstreamPools

  constructor(options: UpstreamOptions) {
    const { addresses, credentials, forwarded, extraCa, loop, answers, random = Math.random, threads = DEFAULT_THREADS, tickMs } = options
    const { maxAnswerBytes = MAX_ANSWER_BYTES } = options
    const names = new NameLookup({ clock: systemClock, maxInFlight: threads - OTHER_THREADS, system: options.systemLookup })
    const lookup = (namespace: string) =>
      guardedLookup(rulesIn(namespace, addresses), (hostname, done) => names.find(hostname, namespace, done), namespace)
    this.models = new ModelTable(addresses)
    this.#ticker = new Ticker(tickMs)
    this.#pools = new UpstreamPools(this.#ticker, { lookup, extraCa, connectTimeoutMs: CONNECT_TIMEOUT_MS })
    this.#deps = {
      pools: this.#pools,
      names,
      ticker: this.#ticker,
      loop,
      answers,
      health: new BackendHealth(this.#ticker, tcpProbe(lookup, CONNECT_TIMEOUT_MS)),
      forwarded,
      maxAnswerBytes,
      credentials,
      random,
    }
  }

  forward(job: ForwardJob): Promise<Outcome> {
    return job.count ? answerCount(job, job.count, this.#deps) : forward(job, this.#deps)
  }

  /** For heartbeats: the backends that are not fully healthy, by `<model uid>/<backend name>`. */
  unhealthy(): Acknowledgement['backends'] {
    const counts: Record<string, Acknowledgement['backends'][string]> = {}
    for (const { backends } of this.models.entries()) {
      for (const { id, total, targets, credential } of backends) {
        const isUsable = this.#deps.credentials(credential) !== undefined
        const up = isUsable ? targets.filter(({ health }) => health.isUp).length : 0
        if (up < total) counts[id] = { up, total }
      }
    }
    return counts
  }

  async close(): Promise<void> {
    await this.#pools.close()
    this.#ticker.stop()
  }
}
