/** Credit: one movement of money of an account. The single source of its CRD, its types and its reference page. */
import { z } from 'zod'
import type { KubeObject } from '#kube/port.ts'
import { mapOf, matching, text, timestamp } from './bounded.ts'
import { condition, DNS_SUBDOMAIN } from './metadata.ts'

/** uid of an object: in a cluster a UUID. */
export const UID = '^[0-9A-Za-z]([0-9A-Za-z-]*[0-9A-Za-z])?$'

/** Maximum characters of a reference. */
export const MAX_REFERENCE = 128
/** Why a balance changes. */
export const CREDIT_TYPES = ['TopUp', 'Grant', 'Refund', 'Dispute', 'Adjustment'] as const

const accountRef = z.strictObject({
  name: matching(DNS_SUBDOMAIN, 253).describe('Name of the Account.'),
  uid: matching(UID, 128)
    .describe(
      'metadata.uid of the Account. Then nothing is booked while the name belongs to another Account. Absent: the name alone decides.',
    )
    .optional(),
})

/** spec of a Credit; none of it can be changed */
export const creditSpec = z.strictObject({
  accountRef: accountRef.describe(
    'The account whose balance changes. The amount belongs to the name of the account, as its spend does: it is booked even if the Account was deleted.',
  ),
  amount: z
    .string()
    .min(1)
    .max(17)
    .describe(
      'Amount in the currency of the installation: a decimal number with at most 9 digits before the point and 6 after it, with - in front where money is taken back. Not 0.',
    ),
  type: z
    .enum(CREDIT_TYPES)
    .describe(
      'Why the balance changes, for people and for the ledger. TopUp: a payment. Grant: a gift. Refund: a payment that was returned. Dispute: a payment that a bank took back, or gave again. Adjustment: a correction. The amount alone decides the direction.',
    ),
  reference: text(MAX_REFERENCE).describe('Id of the payment at its provider, or a note. The ledger shows it.').optional(),
  time: timestamp().describe('When the payment was made, for the ledger. Absent: when the Credit was created.').optional(),
})

/** status of a Credit */
export const creditStatus = z.object({
  observedGeneration: z.int().min(0).describe('The metadata.generation that this status describes.').optional(),
  conditions: mapOf(condition, 'type', { max: 16 }).describe('Booked.').optional(),
})

/** Spec as the API server returns it. */
export type CreditSpec = z.output<typeof creditSpec>
/** Status that the operator writes. */
export type CreditStatus = z.infer<typeof creditStatus>
/** The custom resource. */
export interface Credit extends KubeObject {
  readonly spec: CreditSpec
  readonly status?: CreditStatus
}
