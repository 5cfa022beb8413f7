/** Builds the condition list of a status from judgements. Pure: the whole list, each time. */
import type { ConditionTable, JudgementOf } from './conditions.ts'
import type { Condition } from './metadata.ts'

/** What a condition list needs beside the judgements. */
export interface ConditionContext {
  /** The list that stands in the status now. */
  readonly previous: readonly Condition[] | undefined
  /** metadata.generation of the object that was judged. */
  readonly generation: number
  /** Now, ms since 1970. Written in whole seconds, as Kubernetes does: finer times would differ after a round trip. */
  readonly nowMs: number
}

/** Longest message that the schema admits, in UTF-16 units. */
const MAX_MESSAGE = 32_768

/**
 * The whole new list, in the order of the table. The status comes from the reason. `lastTransitionTime` moves only when the status
 * flips: a new reason or message alone keeps it. A condition without a judgement is dropped, so an absent `WhenTrue` condition is one
 * that nobody judged.
 * @throws TypeError when a condition that is always present has no judgement, or one type has two: both are mistakes in the program
 */
export function conditionList<T extends ConditionTable>(
  table: T,
  judgements: readonly JudgementOf<T>[],
  context: ConditionContext,
): Condition[] {
  const byType = new Map<string, JudgementOf<T>>(judgements.map((judgement) => [judgement.type, judgement]))
  if (byType.size !== judgements.length) throw new TypeError(`two judgements of one type: ${judgements.map((one) => one.type).join(', ')}`)
  const list: Condition[] = []
  for (const [type, entry] of Object.entries(table)) {
    const judgement = byType.get(type)
    if (!judgement && entry.presence === 'Always') throw new TypeError(`no judgement of ${type}, which is always present`)
    if (judgement) list.push(toCondition(judgement, entry.reasons[judgement.reason]?.status ?? 'Unknown', context))
  }
  return list
}

/** @returns the condition of that type, if the list has it */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type)
}

function toCondition(
  judgement: { readonly type: string; readonly reason: string; readonly message: string },
  status: Condition['status'],
  context: ConditionContext,
): Condition {
  const before = findCondition(context.previous, judgement.type)
  return {
    type: judgement.type,
    status,
    observedGeneration: context.generation,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : toSeconds(context.nowMs),
    reason: judgement.reason,
    message: judgement.message.slice(0, MAX_MESSAGE),
  }
}

function toSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
