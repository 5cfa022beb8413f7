/**
 * KeyRecord: the data of an ApiKey that a gateway needs. The operator writes it to the projection and the keyring. It is plain data with a
 * version, without Kubernetes or HTTP. A reader that cannot read a record keeps the last good one.
 */
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash, type KeyProof } from '../values/credential.ts'
import { ACCOUNTS_FEATURE, namespaceField, PROOFS_FEATURE, recordCodec, recordFields, type RecordOf, timeField } from './format.ts'
import { limitedFields, needsOf as needsOfLimits } from './limits-record.ts'

/** A live generation of a key. */
export const keyVerifier = z.object({
  /** Public id; it may stand in logs. */
  id: z.string().min(1).max(64),
  /** SHA-256 of its Credential. */
  hash: z.string().regex(KEY_HASH_PATTERN) as unknown as z.ZodType<KeyHash>,
  /** End, ms since 1970; null: with the key. */
  expiresMs: timeField.nullable(),
  /** Gateways admit only the Credential from which the proof was made. Absent: the hash alone decides, and no other key has the hash. */
  proof: (z.string().regex(KEY_HASH_PATTERN) as unknown as z.ZodType<KeyProof>).optional(),
})

/** Several keys may name one hash with a proof. */
const recordVerifier = keyVerifier.extend({
  /** With a proof: when the key took the hash, ms since 1970. Of several keys whose proof matches, the first one counts. */
  createdMs: timeField.optional(),
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
  verifiers: z.array(recordVerifier).max(8),
})

/** One ApiKey as the gateways see it. */
export type KeyRecord = RecordOf<typeof keyBody>

export const { decode: decodeKeyRecord, encode: encodeKeyRecord } = recordCodec(keyBody, keyNeeds)

/** The needs of a key. The text of a refused key has none: every reader must apply the refusal. */
export function keyNeeds(record: NeedyRecord): readonly string[] {
  if (record.state !== 'Active') return needsOfLimits(record)
  return [
    ...needsOfLimits(record),
    ...(record.account === undefined ? [] : [ACCOUNTS_FEATURE]),
    ...(record.verifiers.some(({ proof }) => proof !== undefined) ? [PROOFS_FEATURE] : []),
  ]
}

type NeedyRecord = Pick<KeyRecord, 'state' | 'limits' | 'budgets' | 'onStoreUnavailable' | 'account'> & {
  readonly verifiers: ReadonlyArray<{ readonly proof?: KeyProof | undefined }>
}
