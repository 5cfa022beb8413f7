/**
 * ModelRecord: a ServedModel with its resolved backends, and the fields that manifests (`api/served-model.ts`) and records share. The
 * operator writes it to the projection. It is plain data with a version. A reader that cannot read a record keeps the last good one.
 */
import { z } from 'zod'
import { ENGINES, LISTED_ROUTES } from '../values/call-routes.ts'
import {
  AUTH_SCHEME,
  HEADER_NAME,
  HEADER_VALUE,
  MAX_AUTH_SCHEME,
  MAX_FIXED_HEADERS,
  MAX_FORWARD_HEADERS,
  MAX_HEADER_NAME,
  MAX_HEADER_VALUE,
} from '../values/forward-headers.ts'
import { DNS_LABEL, MODEL_NAME, REQUEST_FIELD } from '../values/name-patterns.ts'
import { type DataOf, namespaceField, recordCodec, recordFields, type RecordOf, timeField } from './format.ts'
import { MAX_AMOUNT } from './limits-record.ts'

/** A name that clients or servers use for a model. */
export const modelName: z.ZodString = z.string().regex(new RegExp(MODEL_NAME)).min(1).max(253)

/** Name of a request header. */
export const headerName: z.ZodString = z.string().regex(new RegExp(HEADER_NAME)).max(MAX_HEADER_NAME)

/** Maximum number of fields that a model refuses. */
export const MAX_REFUSED_FIELDS = 32
/** Name of a top-level field of a request. */
export const requestField: z.ZodString = z.string().regex(new RegExp(REQUEST_FIELD)).max(64)

/** The word before a credential in its header. */
export const authScheme: z.ZodString = z.string().regex(new RegExp(AUTH_SCHEME)).max(MAX_AUTH_SCHEME)

/** Value of a fixed request header. */
export const headerValue: z.ZodString = z.string().regex(new RegExp(HEADER_VALUE)).max(MAX_HEADER_VALUE)

/** Longest description of a model, characters. Lists of models repeat it for each name. */
const MAX_DESCRIPTION = 512
/** What a model is, in words for people who choose one. */
export const modelDescription: z.ZodString = z.string().min(1).max(MAX_DESCRIPTION)

/** Fields of a backend. */
export const backendFields = {
  name: z.string().regex(new RegExp(DNS_LABEL)).max(63).describe('Name of the backend within this model.'),
  url: z
    .string()
    .min(8)
    .max(2048)
    .describe(
      'Base URL (http or https) in front of /v1. No user info, no loopback, link-local or metadata address. Not together with service.',
    ),
  upstreamModel: modelName.describe('The name that the server knows the model by. Default: servedName.'),
  weight: z.int().min(0).max(1000).describe('Share of the requests. 0: none.').default(100),
  engine: z
    .enum(ENGINES)
    .describe(
      'The program of the server. It decides which routes the backend serves, unless routes lists them, and how messages are translated.',
    )
    .default('Other'),
  messages: z
    .enum(['Translate', 'Native'])
    .describe(
      'Native: the server speaks the Anthropic Messages API itself, and requests are forwarded unchanged. Translate: the gateway translates them to chat completions.',
    )
    .default('Translate'),
  streamUsage: z
    .enum(['Inject', 'Native', 'Estimate'])
    .describe(
      'How the gateway learns the tokens of a stream. Inject: it asks the server for usage (stream_options.include_usage). Native: the server reports usage unasked. Estimate: the server does neither, and the gateway estimates.',
    )
    .default('Inject'),
}

/** A route of model calls, by its path behind `/v1/`. */
export const listedRoute: z.ZodType<(typeof LISTED_ROUTES)[number]> = z.enum(LISTED_ROUTES)

/** Longest waits for a backend, s. */
export const timeoutFields = {
  firstByteSeconds: z.int().min(1).max(3600).describe('Longest wait for the first byte of an answer.').default(600),
  idleSeconds: z.int().min(1).max(3600).describe('Longest silence within an answer.').default(120),
  totalSeconds: z.int().min(1).max(86_400).describe('Longest whole answer.').default(3600),
}

const tokens = z.int().min(1).max(1_000_000_000)

/** Bounds of prompts and answers. */
export const tokenFields = {
  contextTokens: tokens.describe('Maximum number of tokens of a prompt and its answer together.').optional(),
  maxOutputTokens: tokens
    .describe('Maximum number of tokens of an answer. Budgets hold this many for a request that sets no maximum itself.')
    .optional(),
}

const sum = z.string().regex(/^[0-9a-f]{64}$/)

/** A record has `routes` in place of the fields from which the operator derives them. */
const { engine: _engine, messages: _messages, ...recordedFields } = backendFields

const backend = z.object({
  ...recordedFields,
  streamUsage: backendFields.streamUsage.optional(),
  /** Paths behind `/v1/` that the server serves. A gateway ignores those that it does not know. */
  routes: z.array(z.string().max(64)).max(32),
  /** The program of the server. A gateway takes an engine that it does not know for `Other`. */
  engine: z.string().min(1).max(32),
  /** Ready endpoints of the Service: `10.1.2.3:8000` or `[fd00::1]:8000`. */
  endpoints: z.array(z.string().min(3)).max(1000),
  /** The Service itself, `llama.shop.svc:8000`: used by a cold start, which has no endpoints. */
  service: z.string().nullable(),
  /** Exclusive with endpoints and service. */
  url: backendFields.url.nullable(),
  /** SHA-256 of the credential for this backend, hex: the mounted folder has it under this name. null = without one. */
  credentialSum: sum.nullable(),
  /** SHA-256 before the last rotation; it is in use until the newest credential is mounted. */
  formerCredentialSum: sum.nullable(),
  /** `credentialProof` of each: without it no gateway sends the credential. */
  credentialProof: sum.optional(),
  formerCredentialProof: sum.optional(),
  /** The header of the credential, in lower case, and the word before it. Absent: `authorization` and `Bearer`. */
  credentialHeader: headerName.optional(),
  credentialScheme: authScheme.optional(),
  /** Request headers with fixed values. A gateway leaves out those that it never forwards. */
  headers: z
    .array(z.object({ name: headerName, value: headerValue }))
    .max(MAX_FIXED_HEADERS)
    .optional(),
})

/** Micro-units. */
const price = z.int().min(0).max(MAX_AMOUNT)
/** Zero is a price. */
const pricing = z.object({
  inputPerMillion: price,
  outputPerMillion: price,
  cachedInputPerMillion: price,
  /** Absent: `inputPerMillion`. */
  cacheWritePerMillion: price.optional(),
  /** Of each call, beside its tokens. Absent: none. */
  perRequest: price.optional(),
})

const modelBody = z.object({
  ...recordFields,
  namespace: namespaceField,
  /** The oldest object owns a name. */
  createdMs: timeField,
  servedName: modelName,
  aliases: z.array(modelName).max(16),
  /** For people, in lists of models. */
  description: modelDescription.optional(),
  /** Namespaces whose keys may use it, its own included; '*' = all. */
  allowedNamespaces: z.union([z.literal('*'), z.array(z.string().min(1))]),
  /** Absent: the model has no price. */
  pricing: pricing.optional(),
  ...tokenFields,
  timeouts: z.object(timeoutFields),
  /** Request headers that servers get beside the usual ones. A gateway leaves out those that it never forwards. */
  forwardHeaders: z.array(headerName).max(MAX_FORWARD_HEADERS).optional(),
  /** Key from which gateways make the `cache_salt` of each tenant. Absent: servers get none. */
  cacheSalt: sum.optional(),
  /** Top-level fields of requests that the model refuses. */
  refusedFields: z.array(requestField).max(MAX_REFUSED_FIELDS).optional(),
  backends: z.array(backend).min(1).max(16),
})

/** Prices per million tokens and per call, integers of micro-units. */
export type ModelPricing = DataOf<typeof pricing>
/** One target of a ServedModel. */
export type BackendRecord = DataOf<typeof backend>
/** How the gateway learns the usage of a stream: the gateway requests it, the server reports it unasked, or the gateway estimates it. */
export type StreamUsage = NonNullable<BackendRecord['streamUsage']>
/** One ServedModel as the gateways see it. */
export type ModelRecord = RecordOf<typeof modelBody>

export const { decode: decodeModelRecord, encode: encodeModelRecord } = recordCodec(modelBody)

/** Reads the namespace of a record's text of any version. */
export function modelRecordNamespace(text: string): string | undefined {
  try {
    const { namespace } = JSON.parse(text) as { namespace?: unknown }
    return typeof namespace === 'string' ? namespace : undefined
  } catch {
    return undefined // damaged, so no build can read it
  }
}
