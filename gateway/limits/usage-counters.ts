import type { UsageCounters } from '../shared/ledger-call.ts'

/** Sum of two counters of one model. */
export function addUsage(a: UsageCounters | undefined, b: UsageCounters): UsageCounters {
  if (!a) return b
  return {
    model: b.model,
    requests: a.requests + b.requests,
    input: a.input + b.input,
    output: a.output + b.output,
    cached: a.cached + b.cached,
    cost: a.cost + b.cost,
    estimated: a.estimated + b.estimated,
    unpriced: a.unpriced + b.unpriced,
  }
}
