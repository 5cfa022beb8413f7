/** PlanRecord: the part of a Plan that gateways enforce. One record for any number of accounts: an edit of a Plan is one revision. */
import { z } from 'zod'
import { recordCodec, recordFields, type RecordOf } from './format.ts'
import { budgetsField, limitsField } from './limits-record.ts'

const planBody = z.object({
  /** Tells the record from an account's, where both are in one file. */
  kind: z.literal('plan'),
  ...recordFields,
  /** `metadata.generation` of the Plan. */
  generation: z.int().nonnegative(),
  /** The allow-list that the keys of an account may not exceed. */
  models: z.array(z.string().min(1)).min(1),
  /** Limits of a key that has none of its own. */
  keyDefault: limitsField,
  /** No key has more. */
  keyCeiling: limitsField,
  /** Every key has these beside its own. */
  keyBudgets: budgetsField,
  /** Limits that all keys of an account share. */
  accountLimits: limitsField,
  accountBudgets: budgetsField,
})

/** One Plan as the gateways see it. */
export type PlanRecord = RecordOf<typeof planBody>

export const { decode: decodePlanRecord, encode: encodePlanRecord } = recordCodec(planBody)
