/** The effective limits and budgets of a status, with their owners. Pure. */
import type { EffectiveStatus } from '#api/limits.ts'
import type { Limits } from '#contract/records/limits-record.ts'
import type { SubjectPolicy } from '#policy/effective.ts'

/** @returns undefined for a policy without limits and budgets */
export function effectiveStatus({ limits, limitedBy, budgets }: SubjectPolicy): EffectiveStatus | undefined {
  const names = (Object.keys(limits) as Array<keyof Limits>).toSorted()
  const shown = names.flatMap((limit) => {
    const [value, owner] = [limits[limit], limitedBy[limit]]
    return value === undefined || owner === undefined ? [] : [{ limit, value, owner }]
  })
  const owned = budgets.map(({ name, whose }) => ({ budget: name, owner: whose }))
  if (shown.length + owned.length === 0) return undefined
  return { ...(shown.length > 0 && { limits: shown }), ...(owned.length > 0 && { budgets: owned }) }
}
