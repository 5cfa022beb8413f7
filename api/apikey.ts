/** ApiKey: one manifest is one working, enforced key. The single source of its CRD, its types and its reference page. */
import { z } from 'zod'
import { MAX_BUDGETS, onStoreUnavailable } from '#contract/records/limits-record.ts'
import { MODEL_PATTERN } from '#contract/values/name-patterns.ts'
import type { KubeObject } from '#kube/port.ts'
import { boundedMap, mapOf, matching, text, timestamp, whole, wholeListOf } from './bounded.ts'
import { budgetsSchema, effectiveLimits, limitsSchema, usage } from './limits.ts'
import { condition, DNS_SUBDOMAIN, LABEL_VALUE, programmed } from './metadata.ts'

/** 16 entries with 4 bytes per character stay below the 256 KiB that Kubernetes allows for all annotations of an object. */
const MAX_ANNOTATION = 2048

const secretTemplate = z.strictObject({
  labels: boundedMap(matching(LABEL_VALUE, 63)).describe('Labels of the Secret, at most 16; none below headgate.dev/.').optional(),
  annotations: boundedMap(text(MAX_ANNOTATION)).describe('Annotations of the Secret, at most 16; none below headgate.dev/.').optional(),
})

const secret = z.strictObject({
  name: matching(DNS_SUBDOMAIN, 253)
    .describe('Name of the Secret, in the namespace of the ApiKey. Default: the name of the ApiKey. Cannot be changed.')
    .optional(),
  retention: z
    .enum(['Keep'])
    .describe(
      'Keep: the Secret keeps the value while the ApiKey exists, for workloads that mount it. With state: Revoked and after the deletion of the ApiKey, the operator deletes the Secret.',
    )
    .default('Keep'),
  anthropicApiKey: z
    .enum(['Omit', 'Include'])
    .describe(
      'Whether the Secret holds the key as ANTHROPIC_API_KEY too. Include: for frameworks that read no other variable. Omit, also where it is absent: ANTHROPIC_AUTH_TOKEN alone, because an Anthropic SDK that finds both variables warns and sends ANTHROPIC_API_KEY alone.',
    )
    .optional(),
  template: secretTemplate.describe('Labels and annotations that the Secret gets.').optional(),
})

/** SHA-256 in hexadecimal digits, as `sha256sum` and other gateways write it. */
export const SHA256_HEX = '^(sha256:)?[0-9a-f]{64}$'
/** `kubectl get` shows the hint in a column, so it has no control characters. */
export const HINT = '^[^\\x00-\\x1F\\x7F]*$'
/** Longest hint, characters. */
const MAX_HINT = 16

const hash = z.strictObject({
  sha256: matching(SHA256_HEX, 71).describe(
    'SHA-256 of the whole value of the key, as 64 lower-case hexadecimal digits, with or without sha256: before them. Another SHA-256 is a rotation: the former value works until rotation.overlapSeconds are over.',
  ),
  hint: text(MAX_HINT)
    .regex(new RegExp(HINT))
    .describe('Part of the value, for display as status.prefix, such as its last 4 characters. Never the whole value.')
    .optional(),
  proof: matching(SHA256_HEX, 71)
    .describe(
      'SHA-256 of the text headgate-proof-1, the namespace, the name of the ApiKey and the value, joined by line feeds. Gateways admit only a value from which the proof was made, so nobody can use the SHA-256 of somebody else. Required outside the namespaces of scope.unprovenHashes.',
    )
    .optional(),
})

const source = z.strictObject({
  type: z
    .enum(['Generated', 'Hash'])
    .describe(
      'Generated: the operator generates the value and writes it into a Secret. Hash: the value exists already, and the manifest has its SHA-256; there is no Secret. Cannot be changed.',
    )
    .default('Generated'),
  hash: hash.describe('The value of a key with type Hash.').optional(),
})

/** How long a former value works if the manifest sets no time, s. */
export const DEFAULT_OVERLAP_SECONDS = 86_400

const rotation = z.strictObject({
  overlapSeconds: whole(0, 2_592_000)
    .describe('How long the former value works after source.hash.sha256 was changed, in seconds. 0: it stops at once.')
    .default(DEFAULT_OVERLAP_SECONDS),
})

/** The operator adds this finalizer to an ApiKey before it creates anything for the key, and keeps it until the revocation is proven. */
export const FINALIZER = 'headgate.dev/revoke'

/** spec of an ApiKey */
export const apiKeySpec = z.strictObject({
  displayName: text(63).describe('A name for people.').optional(),
  state: z
    .enum(['Active', 'Suspended', 'Revoked'])
    .describe('Active: the key works. Suspended: it answers 401 until it is Active again. Revoked: it answers 401 for ever.')
    .default('Active'),
  accountRef: z
    .strictObject({ name: matching(DNS_SUBDOMAIN, 253).describe('Name of the Account.') })
    .describe(
      'The account of the key, whose plan and limits hold too. The account must admit the namespace. Set it when the key is created; it cannot be changed.',
    )
    .optional(),
  models: wholeListOf(matching(MODEL_PATTERN, 253).min(1), { min: 1, max: 256 }).describe(
    'Models that the key may call: names or aliases, with * at one end for many, at most 8192 characters together. ["*"]: all models.',
  ),
  expirationTime: timestamp().describe('When the key stops working. Not together with ttlSeconds.').optional(),
  ttlSeconds: whole(60, 315_360_000)
    .describe('How long the key works, in seconds from its creation. Not together with expirationTime.')
    .optional(),
  limits: limitsSchema.describe('How fast the key may call. Without a field there is no such limit.').optional(),
  budgets: budgetsSchema
    .describe(
      'How much the key may spend, in up to 4 budgets that all count. Deleting the ApiKey and creating it again starts them at zero.',
    )
    .optional(),
  onStoreUnavailable,
  source: source.describe('Where the value of the key comes from. Absent: Generated.').optional(),
  rotation: rotation
    .describe('What happens to the former value when the value changes. Only with source.type Hash. Absent: it works for another day.')
    .optional(),
  secret: secret.describe('The Secret that the operator writes the key to. Only with source.type Generated.').optional(),
})

/** status of an ApiKey */
export const apiKeyStatus = z.object({
  observedGeneration: z.int().min(0).describe('The metadata.generation that this status describes.').optional(),
  keyID: z.string().max(64).describe('Public id of the key, as gateway logs show it.').optional(),
  prefix: z.string().max(32).describe('First 8 and last 4 characters of the key; with source.type Hash, source.hash.hint.').optional(),
  secretRef: z
    .object({ name: z.string().max(253).describe('Name of the Secret.') })
    .describe('The Secret that holds the key.')
    .optional(),
  verifiers: mapOf(
    z.object({
      id: z.string().max(64).describe('Public id.'),
      createTime: timestamp().describe('When it was made, or taken from the manifest.'),
      expireTime: timestamp().describe('When it ends, if before the key.').optional(),
    }),
    'id',
    { max: 4 },
  )
    .describe('The generations of the key that gateways accept. Hashes are not shown.')
    .optional(),
  expirationTime: timestamp().describe('When the key stops working, from expirationTime or ttlSeconds.').optional(),
  revokedTime: timestamp().describe('When the operator first reported that spec.state is Revoked.').optional(),
  programmed: programmed.describe('How far the newest revision of this key has come.').optional(),
  effective: effectiveLimits.describe('What holds for a key with an account: the smallest of key and plan, and whose it is.').optional(),
  usage: mapOf(usage, 'budget', { max: 2 * MAX_BUDGETS })
    .describe(
      'What was spent of each budget, usually a minute or two ago, and up to two hours ago where tens of thousands of keys spend. Budgets of the plan are named plan/<name>.',
    )
    .optional(),
  lastUsedTime: timestamp().describe('When the key was last used, to the hour.').optional(),
  summary: z
    .object({
      programmed: z.string().max(32).describe('ready/total'),
      models: z.string().max(1024).describe('The allow-list of the key, shortened. A plan may allow less.'),
      used: z.string().max(8).describe('The spent part of the budget of which the least is left.').optional(),
    })
    .describe('Short strings for the columns of kubectl get.')
    .optional(),
  conditions: mapOf(condition, 'type', { max: 16 })
    .describe(
      'Ready, Accepted, SecretIssued, Programmed, LimitsEnforceable; Suspended, Rotating, Expired, BudgetExhausted and Stalled only when True.',
    )
    .optional(),
})

/** Spec as the API server returns it (defaults filled in). */
export type ApiKeySpec = z.output<typeof apiKeySpec>
/** Status that the operator writes. */
export type ApiKeyStatus = z.infer<typeof apiKeyStatus>
/** The custom resource. */
export interface ApiKey extends KubeObject {
  readonly spec: ApiKeySpec
  readonly status?: ApiKeyStatus
}
