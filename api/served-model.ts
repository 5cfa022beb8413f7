/** ServedModel: a model name that clients use, and the servers behind it. The single source of its CRD, types and reference page. */
import { z } from 'zod'
import {
  authScheme,
  backendFields,
  headerName,
  headerValue,
  MAX_REFUSED_FIELDS,
  requestField,
  listedRoute,
  modelDescription,
  modelName,
  timeoutFields,
  tokenFields,
} from '#contract/records/model-record.ts'
import { MAX_FIXED_HEADERS, MAX_FORWARD_HEADERS } from '#contract/values/forward-headers.ts'
import { DNS_LABEL } from '#contract/values/name-patterns.ts'
import type { KubeObject } from '#kube/port.ts'
import { mapOf, matching, setOf, whole } from './bounded.ts'
import { DECIMAL_AMOUNT } from './decimal-amount.ts'
import { labelSelector } from './label-selector.ts'
import { condition, DNS_SUBDOMAIN } from './metadata.ts'

const allowedNamespaces = z.strictObject({
  from: z
    .enum(['Same', 'All', 'Selector'])
    .describe(
      'Same: keys of this namespace. All: keys of every namespace. Selector: keys of namespaces that match the selector, and of this one. All and Selector need a namespace from which the administrator allows publishing.',
    )
    .default('Same'),
  selector: labelSelector.describe('Only with from: Selector.').optional(),
})

const backend = z.strictObject({
  name: backendFields.name,
  service: z
    .strictObject({
      name: matching(DNS_LABEL, 63).describe('Name of the Service, in the same namespace.'),
      port: whole(1, 65535).describe('Port of the Service.'),
    })
    .describe('A Service in the same namespace; its ready endpoints are called directly. Not together with url.')
    .optional(),
  url: backendFields.url.optional(),
  upstreamModel: backendFields.upstreamModel.optional(),
  weight: backendFields.weight,
  engine: backendFields.engine,
  routes: setOf(listedRoute, { max: 16 })
    .describe(
      'The routes that the server serves, by their paths below /v1. Default: those of engine. The field messages decides about /v1/messages; messages/count_tokens needs messages: Native, too.',
    )
    .optional(),
  messages: backendFields.messages,
  streamUsage: backendFields.streamUsage,
  authSecretRef: z
    .strictObject({
      name: matching(DNS_SUBDOMAIN, 253).describe('Name of the Secret.'),
      key: z.string().min(1).max(253).describe('Data key that holds the token.').default('token'),
      header: headerName
        .describe('Request header of the credential, such as x-api-key. Never a header of the connection, the body or the gateway.')
        .default('Authorization'),
      scheme: authScheme
        .describe('Word before the credential in that header; "" for none. Default: Bearer for Authorization, else none.')
        .optional(),
    })
    .describe(
      'Credential for the server, from a Secret in the same namespace that has the label headgate.dev/upstream-auth: "true". For a url, its annotation headgate.dev/upstream-hosts must list the host.',
    )
    .optional(),
  headers: mapOf(
    z.strictObject({
      name: headerName.describe('Name of the header, such as anthropic-version.'),
      value: headerValue.describe('Its value: printable ASCII.'),
    }),
    'name',
    { max: MAX_FIXED_HEADERS },
  )
    .describe(
      "Request headers that every call of this backend gets, in place of a client's headers of these names. Never credentials, claims of identity, or headers of the connection or the body: the condition Accepted names those, and the others are sent.",
    )
    .optional(),
})

const price = matching(DECIMAL_AMOUNT, 16)

const pricing = z.strictObject({
  inputPerMillion: price.describe('Price of a million prompt tokens, such as "0.15"; "0" is a price.'),
  outputPerMillion: price.describe('Price of a million tokens of answers; "0" is a price.'),
  cachedInputPerMillion: price
    .describe('Price of a million prompt tokens that the server had cached. Default: inputPerMillion.')
    .optional(),
  cacheWritePerMillion: price
    .describe('Price of a million prompt tokens that the server reports as written to its cache. Default: inputPerMillion.')
    .optional(),
  perRequest: price
    .describe('Price of each call that a server has worked on, beside its tokens, such as "0.002". Default: none.')
    .optional(),
})

/** spec of a ServedModel */
export const servedModelSpec = z.strictObject({
  servedName: modelName.describe('The name that clients put in "model". Default: the name of the object.').optional(),
  aliases: setOf(modelName, { max: 16 }).describe('More names for the same model.').optional(),
  description: modelDescription
    .describe('What the model is good for, in a sentence. GET /v1/models shows it to the keys that may use the model.')
    .optional(),
  allowedNamespaces: allowedNamespaces.describe('Whose keys may use the model.').prefault({}),
  backends: mapOf(backend, 'name', { min: 1, max: 16 }).describe('Servers of the model.'),
  pricing: pricing
    .describe(
      'What the model costs, in the currency of the budgets. Without it keys with a Currency budget that blocks cannot call the model.',
    )
    .optional(),
  ...tokenFields,
  timeouts: z.strictObject(timeoutFields).describe('How long to wait for a server.').prefault({}),
  cacheSalt: z
    .enum(['None', 'Tenant'])
    .describe(
      'Tenant: servers get a cache_salt of its own for each account, or for each namespace without accounts, so that tenants share no cached prompts; for vLLM, SGLang and TensorRT-LLM, on chat completions, completions and responses. None: of a model that other namespaces may use, answers do not show how many tokens were cached.',
    )
    .default('None'),
  refusedFields: setOf(requestField, { max: MAX_REFUSED_FIELDS })
    .describe('Top-level fields of requests that the model refuses, in any case of letters, beside those that every model refuses.')
    .optional(),
  forwardHeaders: setOf(headerName, { max: MAX_FORWARD_HEADERS })
    .describe(
      'Request headers that servers of this model get beside the usual ones, such as X-Conversation-Id. Never credentials, claims of identity, or headers of the connection or the body: the condition Accepted names those, and the others are forwarded.',
    )
    .optional(),
})

/** status of a ServedModel */
export const servedModelStatus = z.object({
  observedGeneration: z.int().min(0).describe('The metadata.generation that this status describes.').optional(),
  servedName: z.string().max(253).describe('The name that clients use.').optional(),
  backends: mapOf(
    z.object({
      name: z.string().max(63).describe('Name of the backend.'),
      ready: z.int().min(0).describe('Endpoints that gateways can use.'),
      total: z.int().min(0).describe('Endpoints that the cluster knows.'),
    }),
    'name',
    { max: 16 },
  )
    .describe('What the gateways see of each backend.')
    .optional(),
  summary: z
    .object({
      backends: z.string().max(32).describe('usable/all backends'),
      aliases: z.string().max(1024).describe('The aliases, shortened.'),
      price: z.string().max(64).describe('input/output per million tokens, then the price per call').optional(),
    })
    .describe('Short strings for the columns of kubectl get.')
    .optional(),
  conditions: mapOf(condition, 'type', { max: 16 })
    .describe('Ready, Accepted, BackendsHealthy, Priced; Stalled only when True.')
    .optional(),
})

/** Spec as the API server returns it (defaults filled in). */
export type ServedModelSpec = z.output<typeof servedModelSpec>
/** Status that the operator writes. */
export type ServedModelStatus = z.infer<typeof servedModelStatus>
/** The custom resource. */
export interface ServedModel extends KubeObject {
  readonly spec: ServedModelSpec
  readonly status?: ServedModelStatus
}
