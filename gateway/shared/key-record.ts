/**
 * KeyRecord: what a gateway needs to know about one ApiKey, as the operator writes it to the projection and the keyring.
 * Plain data with a version; no Kubernetes and no HTTP in here. A reader that meets a record it cannot read keeps its last good one.
 * Fields that it does not know are ignored: one that must not be ignored is announced in `needs`.
 */
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash } from './credential.ts'
import { FORMAT, formatHead, parseFormat } from './format.ts'

const verifier = z.object({
  id: z.string().min(1).max(64),
  h: z
    .string()
    .regex(KEY_HASH_PATTERN)
    .transform((text) => text as KeyHash),
  exp: z.int().nonnegative().nullable(), // ms since 1970; null = as long as the key
})

const keyRecord = z.object({
  v: z.int().positive(),
  needs: z.array(z.string()).optional(),
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
 * @throws UnknownVersion when another build wrote it; SyntaxError, TypeError or ZodError when it is damaged. The caller keeps its last
 *   good value in any case
 */
export function decodeKeyRecord(text: string): KeyRecord {
  return keyRecord.parse(parseFormat(text))
}

/**
 * Writes one record. Version and revision come first, so that the projection can stamp the revision without parsing.
 * @param version the one to write, whatever `record.v` says
 */
export function encodeKeyRecord(record: KeyRecord, version: number = FORMAT.writes): string {
  const { needs, rev, uid, ns, name, st, exp, gen, models, ver } = record
  return JSON.stringify({ ...formatHead(version, needs), rev, uid, ns, name, st, exp, gen, models, ver })
}
