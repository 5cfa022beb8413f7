/** The ledger of a gateway pod: counts limits in Redis, together with all other pods, over its own connection. */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { RedisConnection, type RedisSettings } from '#platform/redis-connection.ts'
import { redisKeys } from '#contract/redis/redis-keys.ts'
import { LeaseLedger } from './lease-ledger.ts'
import { RedisLedgerStore } from './redis-ledger.ts'
import { RedisWatch } from './redis-watch.ts'
import type { CallEnd } from './subject-calls.ts'

interface PodLedgerDeps {
  readonly redis: RedisSettings
  /** Chart value `redis.keyPrefix`. */
  readonly keyPrefix: string
  /** Random per start, and the second half of the name in the heartbeats. The operator uses it to find holds of dead processes. */
  readonly process: string
  /** Maximum number of pods, for a pod that could not count them yet. */
  readonly maxReplicas: number
  /** Setting LIMITS_WAIT_MS. */
  readonly waitMs: number
  readonly clock: Clock
  readonly log: Log
}

/** A late answer still counts. This long after the wait of the ledger a command ends, and a second later the connection. */
const LATE_MS = 1_000
/** One line in this time, however many calls are refused, ms. */
const REFUSAL_LINE_EVERY_MS = 10_000

export class PodLedger extends LeaseLedger {
  readonly #connection: RedisConnection
  readonly #watch: RedisWatch

  /** Connects at once and reconnects until `close`. @throws Misconfigured if the CA file cannot be read */
  constructor({ redis, keyPrefix, process, clock, log, maxReplicas, waitMs }: PodLedgerDeps) {
    const connection = new RedisConnection(redis, 'headgate-gateway-limits', { commandMs: waitMs + LATE_MS })
    const { client } = connection
    const lines = new StoreLog(log, clock)
    const watch = new RedisWatch({
      run: (commands) => connection.run(commands),
      pods: redisKeys(keyPrefix).pods,
      ...{ clock, log, maxReplicas },
      onAnswer: () => this.heard(),
    })
    super({
      store: new RedisLedgerStore(client, keyPrefix),
      ...{ clock, process, waitMs },
      live: () => watch.live,
      onRefused: (error) => lines.refused(connection.errorLine(error)),
      onEnd: (how) => lines.ended(how),
    })
    this.#connection = connection
    this.#watch = watch
    client.on('ready', () => this.reportAgain()) // possibly another server, or the same one without its data
    watch.start()
  }

  get livePods(): number {
    return this.#watch.live
  }

  get isEvicting(): boolean {
    return this.#watch.isEvicting
  }

  override async close(deadlineMs: number): Promise<void> {
    this.#watch.stop()
    await super.close(deadlineMs)
    this.#connection.close()
  }
}

/** Logs what the calls of a ledger say about Redis: outages, and calls that Redis refuses. */
export class StoreLog {
  readonly #log: Log
  readonly #clock: Clock
  readonly #outage: OutageLog
  #nextLineAt = -Infinity

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
    this.#outage = new OutageLog('limits', log, clock)
  }

  /** Every failure of one outage has another text, so the line is always the same. */
  ended(how: CallEnd): void {
    if (how === 'answered') this.#outage.works()
    if (how === 'failed')
      this.#outage.failed('limits: Redis does not answer; keys with limits are treated as their onStoreUnavailable says')
  }

  /** Handles an error reply, or a bug of the gateway: Redis works, and some limits cannot be checked. @param reason with the remedy */
  refused(reason: string): void {
    const now = this.#clock.monotonic()
    if (now < this.#nextLineAt) return
    this.#nextLineAt = now + REFUSAL_LINE_EVERY_MS
    this.#log.error(`limits cannot be checked: ${reason}`)
  }
}
