/** The ledger of a gateway pod: counts limits in Redis, together with all other pods, over its own connection. */
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { RedisConnection, type RedisSettings } from '#platform/redis-connection.ts'
import { redisKeys } from '#contract/redis/redis-keys.ts'
import { LeaseLedger } from './lease-ledger.ts'
import { RedisLedgerStore } from './redis-ledger.ts'
import { RedisWatch } from './redis-watch.ts'
import { StoreLog } from './store-log.ts'

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
