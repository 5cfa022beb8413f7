/** The store of usage in Redis: one function call per account and report, all in one round trip. */
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { ledgerKeys, usedAccounts } from '#contract/redis/redis-keys.ts'
import type { UsageReport } from '#contract/usage/usage-report.ts'
import type { RedisConnection } from '#platform/redis-connection.ts'
import type { UsageStore } from './usage-reporter.ts'

/** Reports per round trip. */
const BATCH = 500

export class RedisUsage implements UsageStore {
  readonly #redis: Pick<RedisConnection, 'run'>
  readonly #prefix: string
  readonly #count: string
  readonly #used: string

  /** @param prefix chart value `redis.keyPrefix` */
  constructor(redis: Pick<RedisConnection, 'run'>, prefix: string) {
    this.#redis = redis
    this.#prefix = prefix
    this.#count = ledgerFunctions(prefix).count
    this.#used = usedAccounts(prefix)
  }

  async count(reports: readonly UsageReport[]): Promise<readonly UsageReport[]> {
    const counted: UsageReport[] = []
    for (let at = 0; at < reports.length; at += BATCH) counted.push(...(await this.#send(reports.slice(at, at + BATCH))))
    return counted
  }

  /** An error reply concerns one account, whose report is sent again: the operator removes damaged keys. */
  async #send(reports: readonly UsageReport[]): Promise<readonly UsageReport[]> {
    const replies = await this.#redis.run(async (client) => {
      const pipeline = client.pipeline()
      for (const report of reports) {
        const { usage, counted } = ledgerKeys(this.#prefix, report.account)
        pipeline.fcall(this.#count, 3, usage, counted, this.#used, JSON.stringify(report))
      }
      const results = (await pipeline.exec()) ?? []
      const [failure] = results.flatMap(([error]) => error ?? [])
      if (failure !== undefined && results.every(([error]) => error)) throw failure
      return results
    })
    return reports.filter((_, at) => replies[at]?.[0] === null)
  }
}
