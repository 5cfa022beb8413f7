/** How calls ended, in words: answered, refused by reason, failed. Pure. */
import type { UsageCountsView } from '../../server/page-data/usage.ts'
import { sumOf } from '../micros.ts'
import type { UsageTotals } from './usage-sums.ts'

export interface Outcome {
  readonly name: string
  readonly count: bigint
}

type Reason = keyof NonNullable<UsageCountsView['refusals']>

const REASONS: ReadonlyArray<readonly [Reason, string]> = [
  ['rate', 'Over a rate limit, 429'],
  ['budget', 'Budget or balance used up, 402'],
  ['model', 'Model not allowed, 403'],
  ['other', 'Refused for another reason'],
]

/** Outcomes whose counts add up to all calls. Answers and failures are always listed, refusals if there were any. */
export function outcomesOf(rows: readonly UsageCountsView[], { answered, failed, refused }: UsageTotals): readonly Outcome[] {
  const byReason = REASONS.map(([reason, name]) => ({ name, count: sumOf(rows.map(({ refusals }) => BigInt(refusals?.[reason] ?? 0))) }))
  const known = sumOf(byReason.map(({ count }) => count))
  const unknown = { name: 'Refused', count: refused - known }
  return [
    { name: 'Answered', count: answered },
    ...[...byReason, unknown].filter(({ count }) => count > 0n),
    { name: 'Failed, 5xx', count: failed },
  ]
}
