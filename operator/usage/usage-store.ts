/** The operator's port to what gateways have counted, and its store in Redis. */
import { z } from 'zod'
import { ledgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { ledgerKeys, usedAccounts } from '#contract/redis/redis-keys.ts'
import { readUsageRow, type TakenUsage } from '#contract/usage/usage-report.ts'
import type { RedisConnection } from '#platform/redis-connection.ts'

export interface AskedUsage {
  /** Name of the account in the ledger. */
  readonly account: string
  /** Number of the last take that is durable; 0 before the first. */
  readonly known: number
}

export interface OperatorUsageStore {
  /** Takes names of accounts out of the set of those with new usage. @param limit most names */
  used(limit: number): Promise<readonly string[]>
  /** Takes the counts of accounts. What was taken comes again until its number is known. In the order of the arguments. */
  take(asked: readonly AskedUsage[]): Promise<readonly TakenUsage[]>
}

/** Accounts per round trip; each may have thousands of rows. */
const BATCH = 100

const texts = z.array(z.string())
const isDamage = (error: Error): boolean => error.message.includes('WRONGTYPE') || error.message.includes('ERR ledger:')

export class RedisUsageTaker implements OperatorUsageStore {
  readonly #redis: Pick<RedisConnection, 'run'>
  readonly #prefix: string

  /** @param prefix chart value `redis.keyPrefix` */
  constructor(redis: Pick<RedisConnection, 'run'>, prefix: string) {
    this.#redis = redis
    this.#prefix = prefix
  }

  async used(limit: number): Promise<readonly string[]> {
    const { settled } = ledgerFunctions(this.#prefix)
    return texts.parse(await this.#redis.run((client) => client.fcall(settled, 1, usedAccounts(this.#prefix), String(limit))))
  }

  async take(asked: readonly AskedUsage[]): Promise<readonly TakenUsage[]> {
    const found: TakenUsage[] = []
    for (let at = 0; at < asked.length; at += BATCH) found.push(...(await this.#take(asked.slice(at, at + BATCH))))
    return found
  }

  async #take(asked: readonly AskedUsage[]): Promise<readonly TakenUsage[]> {
    const { take } = ledgerFunctions(this.#prefix)
    const replies = await this.#redis.run((client) => {
      const pipeline = client.pipeline()
      for (const { account, known } of asked) {
        const { usage, taken, takes } = ledgerKeys(this.#prefix, account)
        pipeline.fcall(take, 3, usage, taken, takes, String(known))
      }
      return pipeline.exec()
    })
    return (replies ?? []).map(([error, reply]) => {
      if (error && !isDamage(error)) throw error
      return error ? { state: 'none', nowMs: 0 } : takenOf(reply) // the sweep removes damaged keys
    })
  }
}

/** @throws ZodError for a reply that no library of this layout gives */
function takenOf(reply: unknown): TakenUsage {
  const [state, now, number, ...words] = texts.parse(reply)
  const nowMs = z.coerce.number().int().nonnegative().parse(now)
  if (state !== 'rows') return { state: z.enum(['none', 'lost']).parse(state), nowMs }
  const rows = Array.from({ length: words.length / 2 }, (_, at) => readUsageRow(words[2 * at] ?? '', words[2 * at + 1] ?? ''))
  return { state, nowMs, number: z.coerce.number().int().positive().parse(number), rows: rows.flatMap((row) => row ?? []) }
}
