/** Builds the condition list of a status of an object. Pure: returns the whole list every time. */
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
  { previous, generation, nowMs }: ConditionContext,
): Condition[] {
  const byType = new Map<string, ConditionOf<T>>(given.map((condition) => [condition.type, condition]))
  if (byType.size !== given.length) throw new TypeError(`a condition is given twice: ${given.map((one) => one.type).join(', ')}`)
  return Object.entries(table).flatMap(([type, { presence, reasons }]) => {
    const condition = byType.get(type)
    if (condition === undefined && presence === 'Always') throw new TypeError(`the condition ${type} is missing`)
    if (condition === undefined) return []
    const { reason, message } = condition
    const status = reasons[reason]?.status ?? 'Unknown'
    const before = findCondition(previous, type)
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : rfc3339(nowMs)
    return [{ type, status, observedGeneration: generation, lastTransitionTime, reason, message: message.slice(0, MAX_MESSAGE) }]
  })
}

/** @returns the condition of that type, if the list has it */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type)
}

/** @returns whether two statuses are equal as JSON, in any order of keys: the API server may return another order than the applied one */
export function sameStatus(a: object, b: object | undefined): boolean {
  return b !== undefined && isSame(a, b)
}

/** Compares without a copy: every reconcile of an object compares its status. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const fields = definedFields(a)
  return fields.length === definedFields(b).length && fields.every(([field, value]) => isSame(value, (b as Record<string, unknown>)[field]))
}

/** JSON leaves out a field without a value. */
function definedFields(value: object): ReadonlyArray<readonly [string, unknown]> {
  return Object.entries(value).filter(([, content]) => content !== undefined)
}
