/**
 * KeyRecord: what a gateway needs to know about one ApiKey, as the operator writes it to the projection and the keyring.
 * Plain data with a version; no Kubernetes and no HTTP in here. A reader that meets a record it cannot read keeps its last good one.
 */
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash } from './credential.ts'

/** Version of the record text; the reader refuses others. */
export const KEY_RECORD_SCHEMA = 1

const verifier = z.strictObject({
  id: z.string().min(1).max(64),
  h: z
    .string()
    .regex(KEY_HASH_PATTERN)
    .transform((text) => text as KeyHash),
  exp: z.int().nonnegative().nullable(), // ms since 1970; null = as long as the key
})

const keyRecord = z.strictObject({
  v: z.literal(KEY_RECORD_SCHEMA),
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  ns: z.string().min(1).max(253),
  name: z.string().min(1).max(253),
  st: z.enum(['Active', 'Suspended', 'Revoked']),
  exp: z.int().nonnegative().nullable(), // ms since 1970
  gen: z.int().nonnegative(),
  models: z.array(z.array(z.string().min(1)).min(1)).min(1), // all lists must admit a model; unrestricted is [["*"]]
  ver: z.array(verifier).max(8),
})

/** One live generation of a key: public id, SHA-256 of its Credential, and when it ends. */
export type KeyVerifier = z.infer<typeof verifier>
/** One ApiKey as the gateways see it. Times are ms since 1970. */
export type KeyRecord = z.infer<typeof keyRecord>

/**
 * Reads one record.
 * @throws SyntaxError or ZodError when the text is not a version 1 record; the caller keeps its last good value
 */
export function decodeKeyRecord(text: string): KeyRecord {
  return keyRecord.parse(JSON.parse(text))
}

/** Writes one record; `v` and `rev` come first, so that the projection can stamp the revision without parsing. */
export function encodeKeyRecord(record: KeyRecord): string {
  const { v, rev, uid, ns, name, st, exp, gen, models, ver } = record
  return JSON.stringify({ v, rev, uid, ns, name, st, exp, gen, models, ver })
}
