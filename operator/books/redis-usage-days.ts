/** Reads the usage of many subjects for one day from Redis, and no hash that is larger than the library writes. */
import type { Redis } from 'ioredis'
import { z } from 'zod'
import type { UsageCounters } from '#contract/ledger/ledger-call.ts'
import { LEDGER_CAPS } from '#contract/ledger/ledger-layout.ts'
import { decodeUsageDay } from '#contract/usage/ledger-usage.ts'

/** Keys per round trip. */
const BATCH = 500
/** Largest hash that is read. A full day has 33 fields and takes a third of this size. */
const MAX_DAY_BYTES = 65_536
/** Fields that MEMORY USAGE samples: all fields of a day, and few fields of a hash that was filled otherwise. */
const WEIGHED = String(2 * LEDGER_CAPS.usageModels)

const fieldsOf = z.record(z.string(), z.string())

/**
 * Reads usage by day. The sizes are read first: a compromised gateway may have stored 512 MB in a field.
 * @param keys from `usageKey`
 * @returns counters by key; empty for a key that is missing, damaged or too large
 * @throws errors of the connection
 */
export async function readUsageDays(client: Redis, keys: readonly string[]): Promise<ReadonlyArray<readonly UsageCounters[]>> {
  const found = new Map<string, readonly UsageCounters[]>()
  for (let at = 0; at < keys.length; at += BATCH) {
    const bounded = await boundedKeys(client, keys.slice(at, at + BATCH))
    for (const [index, fields] of (await fieldsAt(client, bounded)).entries()) found.set(bounded[index] ?? '', decodeUsageDay(fields))
  }
  return keys.map((key) => found.get(key) ?? [])
}

async function boundedKeys(client: Redis, keys: readonly string[]): Promise<readonly string[]> {
  const pipeline = client.pipeline()
  for (const key of keys) pipeline.hlen(key).memory('USAGE', key, 'SAMPLES', WEIGHED)
  const replies = (await pipeline.exec()) ?? []
  return keys.filter((_, at) => isBounded(answer(replies[2 * at]), answer(replies[2 * at + 1])))
}

/** Whether the hash has a valid size. One extra field counts all other models. */
function isBounded(fields: unknown, bytes: unknown): boolean {
  return Number(fields) >= 1 && Number(fields) <= LEDGER_CAPS.usageModels + 1 && Number(bytes) <= MAX_DAY_BYTES
}

async function fieldsAt(client: Redis, keys: readonly string[]): Promise<ReadonlyArray<Readonly<Record<string, string>>>> {
  if (keys.length === 0) return []
  const pipeline = client.pipeline()
  for (const key of keys) pipeline.hgetall(key)
  const replies = (await pipeline.exec()) ?? []
  return keys.map((_, at) => fieldsOf.safeParse(answer(replies[at])).data ?? {})
}

/** A key of another type is damage of one subject and reads as undefined. @throws any other error */
function answer([error, reply]: readonly [Error | null, unknown] = [null, undefined]): unknown {
  if (error && !error.message.includes('WRONGTYPE')) throw error
  return error ? undefined : reply
}
