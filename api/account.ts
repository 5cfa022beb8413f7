/** Account: whose keys these are, and on which plan. The single source of its CRD, its types and its reference page. */
import { z } from 'zod'
import { billingField } from '#contract/records/account-record.ts'
import { MAX_BUDGETS } from '#contract/records/limits-record.ts'
import type { KubeObject } from '#kube/port.ts'
import { mapOf, matching, text, timestamp, whole } from './bounded.ts'
import { labelSelector } from './label-selector.ts'
import { budgetsSchema, effectiveLimits, limitsSchema, usage } from './limits.ts'
import { condition, DNS_SUBDOMAIN, programmed } from './metadata.ts'

/** RFC 5321 bounds a path at 256 octets with its brackets. The operator sends no mail, so only the form is checked. */
export const EMAIL = '^[^\\s@<>"]+@[^\\s@<>"]+$'
const MAX_EMAIL = 254

const owner = z.strictObject({
  email: matching(EMAIL, MAX_EMAIL).describe('Address of the person who answers for the account.'),
  emailVerification: z
    .enum(['Pending', 'Verified'])
    .describe('Pending: new keys are not issued, and keys issued before go on. Absent: Verified.')
    .optional(),
})

/** spec of an Account */
export const accountSpec = z.strictObject({
  displayName: text(63).describe('A name for people.').optional(),
  owner: owner.describe('Who answers for the account.').optional(),
  planRef: z.strictObject({ name: matching(DNS_SUBDOMAIN, 253).describe('Name of the Plan.') }).describe('The plan of the account.'),
  state: z
    .enum(['Active', 'Suspended'])
    .describe('Suspended: all keys of the account answer 401 until it is Active again.')
    .default('Active'),
  billing: billingField
    .describe(
      'Prepaid: the keys answer 402 when the balance of the account is used up; Credits raise it. Unmetered: what the keys spend is counted, and nothing is refused. An account that becomes Prepaid has spent all that was counted before; a Credit of type Grant makes up for it.',
    )
    .default('Unmetered'),
  namespaces: labelSelector
    .describe('Namespaces whose ApiKeys may belong to the account. Absent: none. The account trusts the prices that these namespaces set.')
    .optional(),
  limits: limitsSchema.describe('How fast all keys of the account together may call. The plan may allow less.').optional(),
  budgets: budgetsSchema.describe('How much all keys of the account together may spend, in up to 4 budgets that all count.').optional(),
})

/** A sum of money as the status shows it: a sign, up to 24 digits, the point and 6 decimals. */
const sumText = z.string().max(32)

/** status of an Account */
export const accountStatus = z.object({
  observedGeneration: z.int().min(0).describe('The metadata.generation that this status describes.').optional(),
  keyCount: whole(0, 1_000_000).describe('ApiKeys of the account.').optional(),
  activeKeyCount: whole(0, 1_000_000).describe('Those that are neither revoked nor expired.').optional(),
  balance: z
    .object({
      amount: sumText.describe(
        'All Credits minus all that was spent. Below 0 where more was spent than there was, or money was taken back.',
      ),
      currency: z.string().max(3).describe('The currency of the installation.'),
      asOf: timestamp().describe('When the amount was last written: at once after a Credit, otherwise at most once a minute.'),
    })
    .describe('What the account has left.')
    .optional(),
  spent: sumText.describe('All that the keys of the account have ever spent, in the currency of the installation.').optional(),
  effective: effectiveLimits.describe('What all keys of the account share: the smallest of account and plan, and whose it is.').optional(),
  usage: mapOf(usage, 'budget', { max: 2 * MAX_BUDGETS })
    .describe('What was spent of each budget that the keys share, usually a minute or two ago.')
    .optional(),
  lastUsedTime: timestamp().describe('When a key of the account was last used, to the hour.').optional(),
  programmed: programmed.describe('How far the newest revision of this account has come.').optional(),
  conditions: mapOf(condition, 'type', { max: 16 })
    .describe(
      'Ready, Accepted, Programmed; BudgetExhausted, BalanceExhausted, KeyLimitReached, SpendHeldBack and SpendUncertain only when True.',
    )
    .optional(),
})

/** Spec as the API server returns it (defaults filled in). */
export type AccountSpec = z.output<typeof accountSpec>
/** Status that the operator writes. */
export type AccountStatus = z.infer<typeof accountStatus>
/** The custom resource. */
export interface Account extends KubeObject {
  readonly spec: AccountSpec
  readonly status?: AccountStatus
}
