/** Conditions of an object, as commands read them. */
import { z } from 'zod'

const condition = z.object({ type: z.string(), status: z.string(), reason: z.string(), message: z.string().default('') })
export type ShownCondition = z.output<typeof condition>

/** The field `status.conditions`. */
export const shownConditions = z.array(condition).default([])

/** @returns undefined for a condition that the object does not have */
export function conditionIn(
  status: { readonly conditions: readonly ShownCondition[] } | undefined,
  type: string,
): ShownCondition | undefined {
  return status?.conditions.find((one) => one.type === type)
}
