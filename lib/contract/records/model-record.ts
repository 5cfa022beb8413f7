/**
 * ModelRecord: a ServedModel with its resolved backends. The operator writes it to the projection. It is plain data with a version. A
 * reader that cannot read a record keeps the last good one. It ignores unknown fields; `needs` names fields that must not be ignored. Texts
 * have short field names, which only this file knows.
 */
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat, type RecordHead } from './format.ts'
import { MAX_AMOUNT } from './limits-record.ts'

/** Prices per million tokens, integers of micro-units. */
export interface ModelPricing {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  /** Price of prompt tokens from the server's cache. */
  readonly cachedInputPerMillion: number
}

/** How the gateway learns the usage of a stream: the gateway requests it, the server reports it unasked, or the gateway estimates it. */
export type StreamUsage = 'Inject' | 'Native' | 'Estimate'

/** One target of a ServedModel. */
export interface BackendRecord {
  readonly name: string
  /** Ready endpoints of the Service: `10.1.2.3:8000` or `[fd00::1]:8000`. */
  readonly endpoints: readonly string[]
  /** The Service itself, `llama.shop.svc:8000`: used by a cold start, which has no endpoints. */
  readonly service: string | null
  /** http(s) base URL; exclusive with endpoints and service. */
  readonly url: string | null
  /** The server's name for the model. */
  readonly upstreamModel: string
  readonly weight: number
  readonly messages: 'Translate' | 'Native'
  /** Absent in texts means Inject. The decoder sets the field. */
  readonly streamUsage?: StreamUsage | undefined
  /** SHA-256 of the credential for this backend, hex: the mounted folder has it under this name. null = without one. */
  readonly credentialSum: string | null
  /** SHA-256 before the last rotation; it is in use until the newest credential is mounted. */
  readonly formerCredentialSum: string | null
}

/** One ServedModel as the gateways see it. */
export interface ModelRecord extends RecordHead {
  /** ms since 1970; the oldest object wins a name. */
  readonly createdMs: number
  readonly servedName: string
  readonly aliases: readonly string[]
  /** Namespaces whose keys may use it, its own included; '*' = all. */
  readonly allowedNamespaces: '*' | readonly string[]
  /** Absent: the model has no price. Zero is a price. */
  readonly pricing?: ModelPricing | undefined
  /** Maximum number of tokens of a prompt and its answer together. */
  readonly contextTokens?: number | undefined
  /** Maximum number of tokens of an answer. */
  readonly maxOutputTokens?: number | undefined
  readonly timeouts: { readonly firstByteSeconds: number; readonly idleSeconds: number; readonly totalSeconds: number }
  readonly backends: readonly BackendRecord[]
}

const sum = z.string().regex(/^[0-9a-f]{64}$/)

const wireBackend = z.object({
  name: z.string().min(1).max(63),
  eps: z.array(z.string().min(3)).max(1000),
  svc: z.string().nullable(),
  url: z.string().nullable(),
  model: z.string().min(1),
  w: z.int().min(0).max(1000),
  messages: z.enum(['Translate', 'Native']),
  usage: z.enum(['Inject', 'Native', 'Estimate']).default('Inject'),
  auth: sum.nullable(),
  formerAuth: sum.nullable(),
})

const price = z.int().min(0).max(MAX_AMOUNT)
const wirePrice = z.object({ in: price, out: price, cached: price })

const wireRecord = z.object({
  v: z.int().positive(),
  needs: z.array(z.string()).optional(),
  rev: z.int().nonnegative(),
  uid: z.string().min(1).max(128),
  ns: z.string().min(1).max(253),
  name: z.string().min(1).max(253),
  created: z.int().nonnegative(),
  served: z.string().min(1).max(253),
  aliases: z.array(z.string().min(1).max(253)).max(16),
  allow: z.union([z.literal('*'), z.array(z.string().min(1))]),
  price: wirePrice.optional(),
  ctx: z.int().positive().optional(),
  maxOut: z.int().positive().optional(),
  to: z.object({ first: z.int().positive(), idle: z.int().positive(), total: z.int().positive() }),
  backends: z.array(wireBackend).min(1).max(16),
})

const modelRecord = wireRecord.transform((wire): ModelRecord => ({
  version: wire.v,
  needs: wire.needs,
  revision: wire.rev,
  uid: wire.uid,
  namespace: wire.ns,
  name: wire.name,
  createdMs: wire.created,
  servedName: wire.served,
  aliases: wire.aliases,
  allowedNamespaces: wire.allow,
  ...capabilitiesOf(wire),
  timeouts: { firstByteSeconds: wire.to.first, idleSeconds: wire.to.idle, totalSeconds: wire.to.total },
  backends: wire.backends.map(backendOf),
}))

/**
 * Decodes a record.
 * @throws UnknownVersion if another build wrote it; SyntaxError, TypeError or ZodError if it is damaged. The caller keeps its last good
 * value in any case
 */
export function decodeModelRecord(text: string): ModelRecord {
  return modelRecord.parse(parseFormat(text))
}

/**
 * Encodes a record with its fields in a fixed order, so that equal records have equal texts. Version and revision come first, so that the
 * projection can write the revision without parsing.
 * @param version version to write, whatever `record.version` is
 */
export function encodeModelRecord(record: ModelRecord, version: number = FORMAT.writes): string {
  const { needs, uid, name, aliases, timeouts } = record
  return JSON.stringify({
    ...formatHead(version, needs),
    rev: record.revision,
    uid,
    ns: record.namespace,
    name,
    created: record.createdMs,
    served: record.servedName,
    aliases,
    allow: record.allowedNamespaces,
    price: wirePriceOf(record.pricing),
    ctx: record.contextTokens,
    maxOut: record.maxOutputTokens,
    to: { first: timeouts.firstByteSeconds, idle: timeouts.idleSeconds, total: timeouts.totalSeconds },
    backends: record.backends.map(wireBackendOf),
  })
}

type Capabilities = Pick<ModelRecord, 'pricing' | 'contextTokens' | 'maxOutputTokens'>

function capabilitiesOf({ price: wire, ctx, maxOut }: z.infer<typeof wireRecord>): Capabilities {
  return {
    ...(wire && { pricing: { inputPerMillion: wire.in, outputPerMillion: wire.out, cachedInputPerMillion: wire.cached } }),
    ...(ctx !== undefined && { contextTokens: ctx }),
    ...(maxOut !== undefined && { maxOutputTokens: maxOut }),
  }
}

function wirePriceOf(pricing: ModelPricing | undefined): z.infer<typeof wirePrice> | undefined {
  return pricing && { in: pricing.inputPerMillion, out: pricing.outputPerMillion, cached: pricing.cachedInputPerMillion }
}

/** Reads the namespace of a record's text of any version. */
export function modelRecordNamespace(text: string): string | undefined {
  try {
    const { ns } = JSON.parse(text) as { ns?: unknown }
    return typeof ns === 'string' ? ns : undefined
  } catch {
    return undefined // damaged, so no build can read it
  }
}

function backendOf(wire: z.infer<typeof wireBackend>): BackendRecord {
  return {
    name: wire.name,
    endpoints: wire.eps,
    service: wire.svc,
    url: wire.url,
    upstreamModel: wire.model,
    weight: wire.w,
    messages: wire.messages,
    streamUsage: wire.usage,
    credentialSum: wire.auth,
    formerCredentialSum: wire.formerAuth,
  }
}

function wireBackendOf(backend: BackendRecord): object {
  return {
    name: backend.name,
    eps: backend.endpoints,
    svc: backend.service,
    url: backend.url,
    model: backend.upstreamModel,
    w: backend.weight,
    messages: backend.messages,
    usage: backend.streamUsage === 'Inject' ? undefined : backend.streamUsage,
    auth: backend.credentialSum,
    formerAuth: backend.formerCredentialSum,
  }
}
