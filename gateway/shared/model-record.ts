/**
 * ModelRecord: one ServedModel with its resolved backends, as the operator writes it to the projection.
 * Plain data with a version; a reader that meets a record it cannot read keeps its last good one.
 */
import { z } from 'zod'

/** Version of the record text; the reader refuses others. */
export const MODEL_RECORD_SCHEMA = 1

const backend = z.strictObject({
  name: z.string().min(1).max(63),
  eps: z.array(z.string().min(3)).max(1000), // "10.1.2.3:8000" or "[fd00::1]:8000"; ready endpoints of the Service
  svc: z.string().nullable(), // "llama.shop.svc:8000": the Service itself, used by a cold start that has no endpoints
  url: z.string().nullable(), // http(s) base URL; exclusive with eps and svc
  model: z.string().min(1), // the name that the backend knows
  w: z.int().min(0).max(1000),
  messages: z.enum(['Translate', 'Native']),
  auth: z.string().nullable(), // file name of the upstream token below the mounted keyring folder
  authSum: z.string().nullable(), // SHA-256 of the token, hex: a pod knows when its mounted file is older
})

const modelRecord = z.strictObject({
  v: z.literal(MODEL_RECORD_SCHEMA),
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  ns: z.string().min(1).max(253),
  name: z.string().min(1).max(253),
  created: z.int().nonnegative(), // ms since 1970; the oldest object wins a name
  served: z.string().min(1).max(253),
  aliases: z.array(z.string().min(1).max(253)).max(16),
  allow: z.union([z.literal('*'), z.array(z.string().min(1))]), // namespaces whose keys may use it, its own included
  to: z.strictObject({ first: z.int().positive(), idle: z.int().positive(), total: z.int().positive() }), // seconds
  backends: z.array(backend).min(1).max(16),
})

/** One target of a ServedModel. */
export type BackendRecord = z.infer<typeof backend>
/** One ServedModel as the gateways see it. */
export type ModelRecord = z.infer<typeof modelRecord>

/**
 * Reads one record.
 * @throws SyntaxError or ZodError when the text is not a version 1 record; the caller keeps its last good value
 */
export function decodeModelRecord(text: string): ModelRecord {
  return modelRecord.parse(JSON.parse(text))
}

/** Writes one record; `v` and `rev` come first, so that the projection can stamp the revision without parsing. */
export function encodeModelRecord(record: ModelRecord): string {
  const { v, rev, uid, ns, name, created, served, aliases, allow, to, backends } = record
  return JSON.stringify({ v, rev, uid, ns, name, created, served, aliases, allow, to, backends })
}
