import type { UsageCounters } from '../shared/ledger-call.ts'
import type { Need, SettledUsage } from './ledger.ts'

const isAmount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/** Whether every amount is a whole number that the ledger can hold. */
export function isSafeNeed({ tokens, certainTokens = 0, holdByUnit }: Need): boolean {
  return [tokens, certainTokens, holdByUnit.Currency ?? 0, holdByUnit.Tokens].every(isAmount)
}

/** As `isSafeNeed`, for usage. */
export function isSafeUsage({ inputTokens, outputTokens, cachedTokens, costMicros = 0 }: SettledUsage): boolean {
  return [inputTokens, outputTokens, cachedTokens, costMicros, inputTokens + outputTokens].every(isAmount)
}

/** The whole hold as an estimate: usage that cannot be read is never nothing. */
export function usageOfHold({ tokens, holdByUnit }: Need): SettledUsage {
  const inputTokens = Math.max(tokens, holdByUnit.Tokens)
  return { inputTokens, outputTokens: 0, cachedTokens: 0, costMicros: holdByUnit.Currency, isEstimated: true }
}

/** Counters of one request. @param model uid of the ServedModel */
export function usageCounters(model: string, usage: SettledUsage): UsageCounters {
  return {
    model,
    requests: 1,
    input: usage.inputTokens,
    output: usage.outputTokens,
    cached: usage.cachedTokens,
    cost: usage.costMicros ?? 0,
    estimated: usage.isEstimated ? 1 : 0,
    unpriced: usage.costMicros === undefined ? 1 : 0,
  }
}
