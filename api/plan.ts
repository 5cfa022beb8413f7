/** Plan: what the keys of an account may use. The single source of its CRD, its types and its reference page. */
import { z } from 'zod'
import { MODEL_PATTERN } from '#contract/values/name-patterns.ts'
import type { KubeObject } from '#kube/port.ts'
import { mapOf, matching, setOf, text, whole, wholeListOf } from './bounded.ts'
import { budgetsSchema, limitsSchema } from './limits.ts'
import { condition, programmed } from './metadata.ts'

/** Time that a key may work, as in an ApiKey, s. */
const ttlSeconds = whole(60, 315_360_000)
/** Maximum number of models that a status names. */
export const MAX_UNRESOLVED = 64

const perKey = z.strictObject({
  limits: z
    .strictObject({
      default: limitsSchema.describe('Limits of a key that has none of its own of that kind.').optional(),
      ceiling: limitsSchema.describe('No key has more. A key that asks for more gets the ceiling.').optional(),
    })
    .describe('How fast one key may call.')
    .optional(),
  ttlSeconds: z
    .strictObject({
      default: ttlSeconds.describe('For a key without an end of its own.').optional(),
      ceiling: ttlSeconds.describe('No key works longer.').optional(),
    })
    .describe('How long one key may work. Acts when a key is accepted or its end is edited, never on keys that exist.')
    .optional(),
  budgets: budgetsSchema.describe('Budgets that each key has in addition to its own, at most 4.').optional(),
})

const perAccount = z.strictObject({
  limits: limitsSchema.describe('How fast all keys of an account together may call.').optional(),
  budgets: budgetsSchema.describe('How much all keys of an account together may spend, in at most 4 budgets.').optional(),
})

/** spec of a Plan */
export const planSpec = z.strictObject({
  displayName: text(63).describe('A name for people.').optional(),
  models: wholeListOf(matching(MODEL_PATTERN, 253).min(1), { min: 1, max: 256 }).describe(
    'Models that the keys may call: names or aliases, with * at one end for many, at most 8192 characters together. ["*"]: all models. A key may call what both its own list and this one admit.',
  ),
  perKey: perKey.describe('What holds for each key of an account.').optional(),
  perAccount: perAccount.describe('What all keys of an account share.').optional(),
  maxKeys: whole(1, 100_000)
    .describe('Maximum number of keys of an account, without revoked and expired ones. The oldest keep their place.')
    .default(100),
})

/** status of a Plan */
export const planStatus = z.object({
  observedGeneration: z.int().min(0).describe('The metadata.generation that this status describes.').optional(),
  accountCount: z.int().min(0).describe('Accounts of this plan.').optional(),
  keyCount: z.int().min(0).describe('ApiKeys of these accounts.').optional(),
  unresolvedModels: setOf(z.string().max(253), { max: MAX_UNRESOLVED })
    .describe('Entries of models that no ServedModel matches, at most 64.')
    .optional(),
  programmed: programmed.describe('How far the newest revision of this plan has come.').optional(),
  conditions: mapOf(condition, 'type', { max: 16 }).describe('Ready, Programmed, ModelsResolved.').optional(),
})

/** Spec as the API server returns it (defaults filled in). */
export type PlanSpec = z.output<typeof planSpec>
/** Status that the operator writes. */
export type PlanStatus = z.infer<typeof planStatus>
/** The custom resource. */
export interface Plan extends KubeObject {
  readonly spec: PlanSpec
  readonly status?: PlanStatus
}
