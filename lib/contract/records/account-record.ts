/** AccountRecord: the part of an Account that gateways enforce for all its keys. A suspension is one record and one revision. */
import { z } from 'zod'
import { recordCodec, recordFields, type RecordOf } from './format.ts'
import { budgetsField, limitsField } from './limits-record.ts'

const accountBody = z.object({
  /** Tells the record from a plan's, where both are in one file. */
  kind: z.literal('account'),
  ...recordFields,
  /** `metadata.generation` of the Account. */
  generation: z.int().nonnegative(),
  /** Deleted: the record stays, so that no gateway takes a missing record for one that has not arrived. */
  state: z.enum(['Active', 'Suspended', 'Deleted']),
  /** uid of the Plan; null: there was never one. */
  plan: recordFields.uid.nullable(),
  /** Name of the account in the ledger, from its name and the installation: its spend outlives the object. */
  ledger: z.string().min(1).max(128),
  limits: limitsField,
  budgets: budgetsField,
})

/** One Account as the gateways see it. */
export type AccountRecord = RecordOf<typeof accountBody>

export const { decode: decodeAccountRecord, encode: encodeAccountRecord } = recordCodec(accountBody)
