/**
 * KeyRecord: the data of an ApiKey that a gateway needs. The operator writes it to the projection and the keyring. It is plain data with a
 * version, without Kubernetes or HTTP. A reader that cannot read a record keeps the last good one. It ignores unknown fields; `needs` names
 * fields that must not be ignored. Texts have short field names, which only this file knows.
 */
import { z } from 'zod'
import { KEY_HASH_PATTERN, type KeyHash } from '../values/credential.ts'
import { FORMAT, formatHead, parseFormat, type RecordHead } from './format.ts'
import { type LimitedRecord, limitFields, limitsOf, needsOf, otherNeeds, wireLimitsOf } from './limits-record.ts'

/** A live generation of a key. */
export interface KeyVerifier {
  /** Public id; it may stand in logs. */
  readonly id: string
  /** SHA-256 of its Credential. */
  readonly hash: KeyHash
  /** End, ms since 1970; null: with the key. */
  readonly expiresMs: number | null
}

/** One ApiKey as the gateways see it. */
export interface KeyRecord extends RecordHead, LimitedRecord {
  readonly state: 'Active' | 'Suspended' | 'Revoked'
  /** ms since 1970; null = never. */
  readonly expiresMs: number | null
  /** `metadata.generation` of the ApiKey. */
  readonly generation: number
  /** All lists must admit a model; unrestricted is [["*"]]. */
  readonly models: readonly (readonly string[])[]
  readonly verifiers: readonly KeyVerifier[]
}

const wireVerifier = z.object({
  id: z.string().min(1).max(64),
  h: z.string().regex(KEY_HASH_PATTERN),
  exp: z.int().nonnegative().nullable(),
})

const wireRecord = z.object({
  v: z.int().positive(),
  needs: z.array(z.string()).optional(),
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  ns: z.string().min(1).max(253),
  name: z.string().min(1).max(253),
  st: z.enum(['Active', 'Suspended', 'Revoked']),
  exp: z.int().nonnegative().nullable(),
  gen: z.int().nonnegative(),
  models: z.array(z.array(z.string().min(1)).min(1)).min(1),
  ...limitFields,
  ver: z.array(wireVerifier).max(8),
})

const keyRecord = wireRecord.transform((wire): KeyRecord => ({
  version: wire.v,
  needs: otherNeeds(wire.needs),
  revision: wire.rev,
  uid: wire.uid,
  namespace: wire.ns,
  name: wire.name,
  state: wire.st,
  expiresMs: wire.exp,
  generation: wire.gen,
  models: wire.models,
  ...limitsOf(wire),
  verifiers: wire.ver.map(({ id, h, exp }) => ({ id, hash: h as KeyHash, expiresMs: exp })),
}))

/**
 * Decodes a record.
 * @throws UnknownVersion if another build wrote it; SyntaxError, TypeError or ZodError if it is damaged. The caller keeps its last good
 * value in any case
 */
export function decodeKeyRecord(text: string): KeyRecord {
  return keyRecord.parse(parseFormat(text))
}

/**
 * Encodes a record. Version and revision come first, so that the projection can write the revision without parsing.
 * @param version version to write, whatever `record.version` is
 */
export function encodeKeyRecord(record: KeyRecord, version: number = FORMAT.writes): string {
  const { uid, name, models } = record
  return JSON.stringify({
    ...formatHead(version, needsOf(record)),
    rev: record.revision,
    uid,
    ns: record.namespace,
    name,
    st: record.state,
    exp: record.expiresMs,
    gen: record.generation,
    models,
    ...wireLimitsOf(record),
    ver: record.verifiers.map(({ id, hash, expiresMs }) => ({ id, h: hash, exp: expiresMs })),
  })
}
