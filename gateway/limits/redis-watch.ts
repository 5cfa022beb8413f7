/** Reads facts about Redis on a timer, so that no request has to: which processes share the limits, and whether Redis may evict data. */
import type { Redis } from 'ioredis'
import type { Cancel, Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { LIVE_FOR_MS } from '#contract/records/revision-log.ts'
import { evictionError } from '#platform/redis-connection.ts'

interface RedisWatchDeps {
  /** Runs commands on the connection of the ledger; rejects when Redis does not answer. */
  readonly run: <T>(commands: (redis: Pick<Redis, 'time' | 'zcount' | 'info'>) => Promise<T>) => Promise<T>
  /** Sorted set of the heartbeats: `redisKeys`. */
  readonly pods: string
  readonly clock: Clock
  readonly log: Log
  /** Number of pods to assume until the first answer of Redis: the maximum. */
  readonly maxReplicas: number
  /** Called after each answer of Redis. */
  readonly onAnswer: () => void
}

const READ_EVERY_MS = 1_000
/** Number of stored answers: a Redis that has just lost its data knows no pod until the next heartbeats. */
const REMEMBERED = 5
/** Reads between two checks of the policy. */
const POLICY_EVERY = 30

/** Reads each second while it runs. The last facts stay known while Redis does not answer. */
export class RedisWatch {
  readonly #deps: RedisWatchDeps
  readonly #eviction: OutageLog
  #counts: number[] = []
  #looks = 0
  #isEvicting = false
  #cancel: Cancel | undefined
  #isStopped = false

  constructor(deps: RedisWatchDeps) {
    this.#deps = deps
    this.#eviction = new OutageLog('Redis without eviction', deps.log, deps.clock)
  }

  start(): void {
    void this.#read()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel?.()
  }

  /** Number of gateway processes that share the limits, at least 1: the maximum of the last answers, so that shares are not too large. */
  get live(): number {
    return this.#counts.length === 0 ? this.#deps.maxReplicas : Math.max(1, ...this.#counts)
  }

  get isEvicting(): boolean {
    return this.#isEvicting
  }

  async #read(): Promise<void> {
    const { run, clock } = this.#deps
    try {
      await run(async (redis) => {
        this.#counts = [...this.#counts, await this.#count(redis)].slice(-REMEMBERED)
        this.#deps.onAnswer()
        if (this.#looks++ % POLICY_EVERY === 0) await this.#checkPolicy(redis)
      })
    } catch {
      // Redis does not answer: the ledger logs it, and the last facts stay
    }
    if (!this.#isStopped) this.#cancel = clock.after(READ_EVERY_MS, () => void this.#read())
  }

  /** Counts pods by the clock of Redis, which the heartbeats use too. */
  async #count(redis: Pick<Redis, 'time' | 'zcount'>): Promise<number> {
    const [seconds] = await redis.time()
    return await redis.zcount(this.#deps.pods, Number(seconds) * 1_000 - LIVE_FOR_MS, '+inf')
  }

  async #checkPolicy(redis: Pick<Redis, 'info'>): Promise<void> {
    const reason = await evictionError(redis)
    this.#isEvicting = reason !== undefined
    if (reason === undefined) this.#eviction.works()
    else this.#eviction.failed(reason)
  }
}
