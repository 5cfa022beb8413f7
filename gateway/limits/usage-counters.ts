import type { UsageCounters } from '#contract/ledger/ledger-call.ts'
import type { SettledUsage } from './ledger.ts'

/** Usage counters of one model while they grow. */
export type UsageTally = { -readonly [Name in keyof UsageCounters]: UsageCounters[Name] }

/** @param model uid of the ServedModel */
export function emptyUsage(model: string): UsageTally {
  return { model, requests: 0, input: 0, output: 0, cached: 0, cost: 0, estimated: 0, unpriced: 0 }
}

/** Adds counters of one model. */
export function addUsage(tally: UsageTally, more: UsageCounters): void {
  tally.requests += more.requests
  tally.input += more.input
  tally.output += more.output
  tally.cached += more.cached
  tally.cost += more.cost
  tally.estimated += more.estimated
  tally.unpriced += more.unpriced
}

/** Adds one request. */
export function addRequest(tally: UsageTally, { inputTokens, outputTokens, cachedTokens, costMicros, isEstimated }: SettledUsage): void {
  tally.requests += 1
  tally.input += inputTokens
  tally.output += outputTokens
  tally.cached += cachedTokens
  tally.cost += costMicros ?? 0
  if (isEstimated) tally.estimated += 1
  if (costMicros === undefined) tally.unpriced += 1
}

/** The tally of a model, created if missing. */
export function tallyOf(tallies: Map<string, UsageTally>, model: string): UsageTally {
  const found = tallies.get(model)
  if (found) return found
  const made = emptyUsage(model)
  tallies.set(model, made)
  return made
}
