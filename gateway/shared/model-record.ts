/**
 * ModelRecord: one ServedModel with its resolved backends, as the operator writes it to the projection.
 * Plain data with a version; a reader that meets a record it cannot read keeps its last good one. Fields that it does not know are
 * ignored: one that must not be ignored is announced in `needs`.
 */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from './format.ts'

const sum = z.string().regex(/^[0-9a-f]{64}$/)

const backend = z.object({
  name: z.string().min(1).max(63),
  eps: z.array(z.string().min(3)).max(1000), // "10.1.2.3:8000" or "[fd00::1]:8000"; ready endpoints of the Service
  svc: z.string().nullable(), // "llama.shop.svc:8000": the Service itself, used by a cold start that has no endpoints
  url: z.string().nullable(), // http(s) base URL; exclusive with eps and svc
  model: z.string().min(1), // the name that the backend knows
  w: z.int().min(0).max(1000),
  messages: z.enum(['Translate', 'Native']),
  auth: sum.nullable(), // SHA-256 of the credential for this backend, hex; the mounted folder has it under this name
  formerAuth: sum.nullable(), // the same before the last rotation: in use until the newest one is mounted
})

const modelRecord = z.object({
  v: z.int().positive(),
  needs: z.array(z.string()).optional(),
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  ns: z.string().min(1).max(253),
  name: z.string().min(1).max(253),
  created: z.int().nonnegative(), // ms since 1970; the oldest object wins a name
  served: z.string().min(1).max(253),
  aliases: z.array(z.string().min(1).max(253)).max(16),
  allow: z.union([z.literal('*'), z.array(z.string().min(1))]), // namespaces whose keys may use it, its own included
  to: z.object({ first: z.int().positive(), idle: z.int().positive(), total: z.int().positive() }), // seconds
  backends: z.array(backend).min(1).max(16),
})

/** One target of a ServedModel. */
export type BackendRecord = z.infer<typeof backend>
/** One ServedModel as the gateways see it. */
export type ModelRecord = z.infer<typeof modelRecord>

/**
 * Reads one record.
 * @throws UnknownVersion when another build wrote it; SyntaxError, TypeError or ZodError when it is damaged. The caller keeps its last
 *   good value in any case
 */
export function decodeModelRecord(text: string): ModelRecord {
  return modelRecord.parse(parseFormat(text))
}

/**
 * Writes one record. Version and revision come first, so that the projection can stamp the revision without parsing.
 * @param version the one to write, whatever `record.v` says
 */
export function encodeModelRecord(record: ModelRecord, version: number = FORMAT.writes): string {
  const { needs, rev, uid, ns, name, created, served, aliases, allow, to } = record
  const backends = record.backends.map(orderedBackend)
  return JSON.stringify({ ...formatHead(version, needs), rev, uid, ns, name, created, served, aliases, allow, to, backends })
}

/** Always the same order of fields, so that equal records have equal texts. */
function orderedBackend({ name, eps, svc, url, model, w, messages, auth, formerAuth }: BackendRecord): BackendRecord {
  return { name, eps, svc, url, model, w, messages, auth, formerAuth }
}
