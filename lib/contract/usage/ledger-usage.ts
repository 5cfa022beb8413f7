/** Usage counters as the ledger's library stores them: one hash per UTC day, one field per model. */
import type { UsageCounters } from '../ledger/ledger-call.ts'
import { ledgerKeys } from '../redis/redis-keys.ts'
import { DAY_MS } from '../ledger/ledger-layout.ts'

/** @returns the key of one UTC day. @param prefix chart value `redis.keyPrefix` @param subject uid of an ApiKey or Account */
export function usageKey(prefix: string, subject: string, atMs: number): string {
  return `${ledgerKeys(prefix, subject).use}:${Math.floor(atMs / DAY_MS)}`
}

const FIELD = /^\d{1,16}( \d{1,16}){6}$/

/**
 * Reads one field.
 * @param model uid of the ServedModel, or `OTHER_MODELS`
 * @returns undefined for a text that the library has not written
 */
export function decodeUsage(model: string, text: string): UsageCounters | undefined {
  if (!FIELD.test(text)) return undefined
  const values = text.split(' ').map(Number)
  const counter = (at: number): number => values[at] ?? 0
  if (!values.every(Number.isSafeInteger)) return undefined
  return {
    ...{ model, requests: counter(0), input: counter(1), output: counter(2), cached: counter(3) },
    ...{ cost: counter(4), estimated: counter(5), unpriced: counter(6) },
  }
}

/** The text of one field; `decodeUsage` reads it. */
export function encodeUsage({ requests, input, output, cached, cost, estimated, unpriced }: UsageCounters): string {
  return [requests, input, output, cached, cost, estimated, unpriced].join(' ')
}

/** The uid of a ServedModel, or `OTHER_MODELS`. */
const MODEL = /^[A-Za-z0-9-]{1,64}$/

/**
 * Reads the hash of one day. Fields that the library has not written, and models whose name cannot be a uid, are omitted: gateways can
 * write anything there.
 * @returns counters by name of the model
 */
export function decodeUsageDay(fields: Readonly<Record<string, string>>): readonly UsageCounters[] {
  return Object.entries(fields)
    .flatMap(([model, text]) => (MODEL.test(model) ? (decodeUsage(model, text) ?? []) : []))
    .toSorted((a, b) => (a.model < b.model ? -1 : 1))
}
