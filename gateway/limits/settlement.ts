import type { Need, SettledUsage } from './ledger.ts'

const isAmount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/** Whether every amount is a whole number that the ledger can hold. */
export function isSafeNeed({ tokens, certainTokens = 0, holdByUnit }: Need): boolean {
  const { Currency = 0, Tokens } = holdByUnit
  return isAmount(tokens) && isAmount(certainTokens) && isAmount(Currency) && isAmount(Tokens)
}

/** As `isSafeNeed`, for usage. */
export function isSafeUsage({ inputTokens, outputTokens, costMicros = 0 }: SettledUsage): boolean {
  const areTokensSafe = isAmount(inputTokens) && isAmount(outputTokens) && isAmount(inputTokens + outputTokens)
  return areTokensSafe && isAmount(costMicros)
}

/** The whole hold: unreadable usage is never zero. */
export function usageOfHold({ tokens, holdByUnit }: Need): SettledUsage {
  const inputTokens = Math.max(tokens, holdByUnit.Tokens)
  return { inputTokens, outputTokens: 0, costMicros: holdByUnit.Currency }
}
