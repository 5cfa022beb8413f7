/** AccountRecord: the part of an Account that gateways enforce for all its keys. A suspension is one record and one revision. */
import { z } from 'zod'
import { SUM_TEXT } from '../values/signed-micros.ts'
import { BALANCES_FEATURE, recordCodec, recordFields, type RecordOf } from './format.ts'
import { budgetsField, limitsField } from './limits-record.ts'

/** Prepaid: requests are refused when the balance is used up. Unmetered: what the keys spend is counted, and nothing is refused. */
export const billingField: z.ZodEnum<{ Unmetered: 'Unmetered'; Prepaid: 'Prepaid' }> = z.enum(['Unmetered', 'Prepaid'])

const balance = z.object({
  /** The sum of all credits of the name, micro-units as a decimal integer. Negative after refunds above the top-ups. */
  credits: z.string().regex(SUM_TEXT),
  billing: billingField,
})

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
  /** Absent: the record was written before accounts had balances, and nothing is counted. */
  balance: balance.optional(),
})

/** One Account as the gateways see it. */
export type AccountRecord = RecordOf<typeof accountBody>

export const { decode: decodeAccountRecord, encode: encodeAccountRecord } = recordCodec(accountBody, needsOf)

/** A reader that cannot enforce a balance must not admit the keys of a prepaid account. Every reader must apply a refusal. */
function needsOf(record: AccountRecord): readonly string[] {
  return record.state === 'Active' && record.balance?.billing === 'Prepaid' ? [BALANCES_FEATURE] : []
}
