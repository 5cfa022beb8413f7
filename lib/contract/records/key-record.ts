/**
 * KeyRecord: the data of an ApiKey that a gateway needs. The operator writes it to the projection and the keyring. It is plain data with a
 * version, without Kubernetes or HTTP. A reader that cannot read a record keeps the last good one.
 */
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash } from '../values/credential.ts'
import { ACCOUNTS_FEATURE, namespaceField, recordCodec, recordFields, type RecordOf, timeField } from './format.ts'
import { limitedFields, needsOf as needsOfLimits } from './limits-record.ts'

/** A live generation of a key. */
export const keyVerifier = z.object({
  /** Public id; it may stand in logs. */
  id: z.string().min(1).max(64),
  /** SHA-256 of its Credential. */
  hash: z.string().regex(KEY_HASH_PATTERN) as unknown as z.ZodType<KeyHash>,
  /** End, ms since 1970; null: with the key. */
  expiresMs: timeField.nullable(),
})

/** The body of a KeyRecord. */
export const keyBody = z.object({
  ...recordFields,
  namespace: namespaceField,
  state: z.enum(['Active', 'Suspended', 'Revoked']),
  /** ms since 1970; null = never. */
  expiresMs: timeField.nullable(),
  /** `metadata.generation` of the ApiKey. */
  generation: z.int().nonnegative(),
  /** All lists must admit a model; unrestricted is [["*"]]. */
  models: z.array(z.array(z.string().min(1)).min(1)).min(1),
  /** uid of the Account that the key belongs to. */
  account: recordFields.uid.optional(),
  ...limitedFields,
  verifiers: z.array(keyVerifier).max(8),
})

/** One ApiKey as the gateways see it. */
export type KeyRecord = RecordOf<typeof keyBody>

export const { decode: decodeKeyRecord, encode: encodeKeyRecord } = recordCodec(keyBody, keyNeeds)

/** The needs of a key. The text of a refused key has none: every reader must apply the refusal. */
export function keyNeeds(record: Pick<KeyRecord, 'state' | 'limits' | 'budgets' | 'onStoreUnavailable' | 'account'>): readonly string[] {
  return [...needsOfLimits(record), ...(record.account !== undefined && record.state === 'Active' ? [ACCOUNTS_FEATURE] : [])]
}
