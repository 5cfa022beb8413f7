/** Builds the condition list of a status of an object. Pure: returns the whole list every time. */
import { isDeepStrictEqual } from 'node:util'
import { rfc3339 } from '#contract/values/rfc3339.ts'
import type { ConditionOf, ConditionTable } from './conditions.ts'
import type { Condition } from './metadata.ts'

/** What a condition list depends on besides the conditions themselves. */
export interface ConditionContext {
  /** The present list in the status. */
  readonly previous: readonly Condition[] | undefined
  /** metadata.generation of the object that the conditions describe. */
  readonly generation: number
  /** Now, ms since 1970. Written in whole seconds, as Kubernetes does: finer times would differ after a round trip. */
  readonly nowMs: number
}

/** Longest message that the schema admits, in UTF-16 units. */
const MAX_MESSAGE = 32_768

/**
 * Returns the whole new list, in the order of the table. The reason decides the status of a condition. `lastTransitionTime` changes only with
 * the status, not with the reason or message alone. A condition that is not given is dropped.
 * @throws TypeError when a condition that is always present is missing, or a type is given twice: both are programming errors
 */
export function conditionList<T extends ConditionTable>(
  table: T,
  given: readonly ConditionOf<T>[],
  context: ConditionContext,
): Condition[] {
  const byType = new Map<string, ConditionOf<T>>(given.map((condition) => [condition.type, condition]))
  if (byType.size !== given.length) throw new TypeError(`a condition is given twice: ${given.map((one) => one.type).join(', ')}`)
  const list: Condition[] = []
  for (const [type, entry] of Object.entries(table)) {
    const condition = byType.get(type)
    if (!condition && entry.presence === 'Always') throw new TypeError(`the condition ${type} is missing`)
    if (condition) list.push(toCondition(condition, entry.reasons[condition.reason]?.status ?? 'Unknown', context))
  }
  return list
}

/** @returns the condition of that type, if the list has it */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type)
}

function toCondition(
  condition: { readonly type: string; readonly reason: string; readonly message: string },
  status: Condition['status'],
  context: ConditionContext,
): Condition {
  const before = findCondition(context.previous, condition.type)
  return {
    type: condition.type,
    status,
    observedGeneration: context.generation,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : rfc3339(context.nowMs),
    reason: condition.reason,
    message: condition.message.slice(0, MAX_MESSAGE),
  }
}

/** @returns whether two statuses are equal as JSON, in any order of keys: the API server may return another order than the applied one */
export function sameStatus(a: object, b: object | undefined): boolean {
  return b !== undefined && isDeepStrictEqual(plain(a), plain(b))
}

function plain(value: object): unknown {
  return JSON.parse(JSON.stringify(value))
}
