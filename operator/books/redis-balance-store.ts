/** Implements BalanceStore in Redis. Many accounts share one round trip, with one function call per account. */
import { z } from 'zod'
import type { RedisConnection } from '#platform/redis-connection.ts'
import type { AccountSpend } from '#contract/ledger/account-spend.ts'
import { ledgerFunctions, type LedgerFunctions } from '#contract/ledger/ledger-functions.ts'
import { ledgerKeys } from '#contract/redis/redis-keys.ts'
import { halvesOf, sumOfHalves } from '#contract/values/signed-micros.ts'
import type { BalanceMerge, BalanceRead, BalanceStore, DeadHold } from './balance-store.ts'

/** Calls per round trip. An answer has some hundred bytes, and a few thousand where many processes have spent. */
const BATCH = 500

const texts = z.array(z.string())

type Call = readonly [function_: string, key: string, ...args: string[]]

export class RedisBalanceStore implements BalanceStore {
  readonly #redis: Pick<RedisConnection, 'run'>
  readonly #prefix: string
  readonly #functions: LedgerFunctions

  /**
   * @param redis a connection of the ACL user that may write the ledger. The functions are loaded elsewhere
   * @param keyPrefix chart value `redis.keyPrefix`
   */
  constructor(redis: Pick<RedisConnection, 'run'>, keyPrefix: string) {
    this.#redis = redis
    this.#prefix = keyPrefix
    this.#functions = ledgerFunctions(keyPrefix)
  }

  async readBalances(names: readonly string[]): Promise<readonly BalanceRead[]> {
    const replies = await this.#each(names.map((name) => this.#call('balance', name)))
    return replies.map(readOf)
  }

  async mergeBalances(rows: readonly BalanceMerge[]): Promise<void> {
    await this.#each(rows.map(({ name, books, isReady }) => this.#call('merge', name, ...wordsOf(books, isReady))))
  }

  async raisePeriods(rows: ReadonlyArray<{ readonly name: string; readonly period: number }>): Promise<void> {
    await this.#each(rows.map(({ name, period }) => this.#call('raise', name, String(period))))
  }

  async freeHolds(rows: readonly DeadHold[]): Promise<void> {
    await this.#each(rows.map(({ name, process, held }) => this.#call('free', name, process, String(held))))
  }

  async dropBalances(names: readonly string[]): Promise<void> {
    for (let at = 0; at < names.length; at += BATCH) {
      await this.#redis.run(async (client) => {
        const pipeline = client.pipeline()
        for (const name of names.slice(at, at + BATCH)) pipeline.unlink(this.#key(name))
        for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
      })
    }
  }

  #key(name: string): string {
    return ledgerKeys(this.#prefix, name).balance
  }

  #call(callback: 'balance' | 'merge' | 'raise' | 'free', name: string, ...args: readonly string[]): Call {
    return [this.#functions[callback], this.#key(name), ...args]
  }

  /** Runs one function call per row. A damaged balance gets an Error as its reply. @throws any other error, for all rows */
  async #each(calls: readonly Call[]): Promise<readonly unknown[]> {
    const replies: unknown[] = []
    for (let at = 0; at < calls.length; at += BATCH) {
      const results = await this.#redis.run((client) => {
        const pipeline = client.pipeline()
        for (const [name, key, ...args] of calls.slice(at, at + BATCH)) pipeline.fcall(name, 1, key, ...args)
        return pipeline.exec()
      })
      for (const [error, reply] of results ?? []) {
        if (error && !isDamage(error)) throw error
        replies.push(error ?? reply)
      }
    }
    return replies
  }
}

/** Whether the error means damage: a key of another type, or a value that the functions refuse. */
function isDamage(error: Error): boolean {
  return error.message.includes('WRONGTYPE') || error.message.includes('ERR ledger:')
}

/** Arguments of a merge: the closed spend as two numbers, then three words for each spend. */
function wordsOf({ openFrom, closedSpend, spent }: AccountSpend, isReady: boolean): string[] {
  const { high, low } = halvesOf(closedSpend)
  const rows = [...spent].flatMap(([field, amount]) => {
    const at = field.indexOf(':')
    return [field.slice(0, at), field.slice(at + 1), String(amount)]
  })
  return [String(openFrom), String(high), String(low), isReady ? '1' : '0', ...rows]
}

const head = z.tuple([z.literal('found'), z.string(), z.coerce.number().int(), z.coerce.number().int(), z.coerce.number().int()])

function readOf(reply: unknown): BalanceRead {
  const words = texts.safeParse(reply).data ?? []
  if (words[0] === 'absent') return 'absent'
  const parsed = head.safeParse(words.slice(0, 5))
  if (!parsed.success) return 'damaged'
  const [, openFrom, period, high, low] = parsed.data
  return {
    openFrom: openFrom === '' ? undefined : Number(openFrom),
    period,
    closedSpend: sumOfHalves({ high, low }),
    spent: fieldsOf(words.slice(5), 'c:'),
    holders: fieldsOf(words.slice(5), 'h:'),
  }
}

/** @param kind start of the names, which the result lacks */
function fieldsOf(words: readonly string[], kind: 'c:' | 'h:'): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (let at = 0; at + 1 < words.length; at += 2) {
    const [name = '', value = ''] = words.slice(at, at + 2)
    if (name.startsWith(kind)) found.set(name.slice(kind.length), Number(value))
  }
  return found
}
