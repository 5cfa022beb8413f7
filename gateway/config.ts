import { hostname } from 'node:os'
import { z } from 'zod'
import { BY_CHART, flag, logLevel, oneOf, optionalText, port, readEnv, setting, wholeNumber } from '#platform/settings.ts'
import { REDIS_SETTINGS, redisSettings } from '#platform/settings.ts'
import { namesOf } from '#contract/values/namespace-list.ts'
import type { RedisSettings } from '#platform/redis-connection.ts'
import { corsOrigins } from './http/cors.ts'
import { forwardedHeaders } from './upstream/upstream-headers.ts'

/** Half of what V8 can hold as one string, 512 MiB. */
const LARGEST_BODY_BYTES = 2 ** 28

/** The settings by name, in the order of the documents. The variable of `maxBodyBytes` is `MAX_BODY_BYTES`. */
export const GATEWAY_SETTINGS = z.object({
  port: port({ default: 8080, about: 'Port of the API.', chart: BY_CHART }),
  metricsPort: port({ default: 9090, about: 'Port of `/healthz`, `/readyz` and `/metrics`.', chart: BY_CHART }),
  ...REDIS_SETTINGS,
  podName: setting(
    z
      .string()
      .regex(/^[^/\s]{1,253}$/, 'is not a pod name')
      .optional()
      .transform((name) => name ?? hostname()),
    {
      about: 'Name of this pod, as in its EndpointSlice. Default: the name of the host.',
      remedy: 'set it from metadata.name by the downward API',
      chart: BY_CHART,
    },
  ),
  keyringDir: optionalText({
    about:
      'Folder where the keyring, model and upstream Secrets are mounted: for a start without Redis, revocation while it is away, and upstream tokens.',
    remedy: 'set it to the mount path',
    chart: BY_CHART,
  }),
  coldStart: oneOf(['Keyring', 'RequireRedis'], {
    default: 'Keyring',
    about: 'Whether a pod that finds no projection for 5 s serves from `KEYRING_DIR`.',
  }),
  accessLog: oneOf(['errors', 'sample', 'all'], {
    default: 'sample',
    about:
      '`errors`: failures of the gateway or a backend, and answers that broke off, at most ten lines per second of each kind. `sample`: those and 1 % of the rest. `all`: every request.',
  }),
  logLevel: logLevel(),
  maxBodyBytes: wholeNumber(1_024, LARGEST_BODY_BYTES, {
    default: 33_554_432,
    about: 'Largest request body, bytes.',
    chart: 'gateway.maxBodyBytes',
  }),
  maxTranslatedAnswerBytes: wholeNumber(65_536, 33_554_432, {
    default: 33_554_432,
    about:
      'Largest plain answer of a model server that is translated, or that becomes a stream, bytes. It is read whole, within the memory for request bodies. Streams have no such bound.',
  }),
  deregistrationSeconds: wholeNumber(0, 300, {
    default: 5,
    about:
      'How long a pod goes on taking requests after SIGTERM, s, at least: Services and ingresses forget its endpoint only some time later.',
    chart: 'gateway.deregistrationSeconds',
  }),
  drainSeconds: wholeNumber(0, 3_600, {
    default: 60,
    about: 'How long running answers may go on after that, s. The grace period of the pod is longer than both together.',
    chart: 'gateway.drainSeconds',
  }),
  apiKeyHeader: flag({ default: true, about: 'Whether `x-api-key` counts as a credential beside `Authorization: Bearer`.' }),
  forwardHeaders: setting(z.string().default('').transform(forwardable), {
    about: 'More request headers to forward to model servers, separated by commas.',
    remedy: 'set it to header names such as x-tenant,x-trace; credentials, claims of identity and connection headers are never forwarded',
    chart: 'gateway.forwardHeaders',
  }),
  clusterAddressNamespaces: setting(namesOf('*'), {
    about:
      'Namespaces whose ServedModels may have a url inside the cluster, separated by commas; * = any; empty: none. The same as the operator has.',
    remedy: 'list names of namespaces, or *',
    chart: 'scope.clusterAddresses',
  }),
  corsOrigins: setting(z.string().default('').transform(browserOrigins), {
    about:
      'Origins whose pages may call the gateway from a browser, separated by commas, such as `https://chat.example.com`; `*` alone means every origin. Default: none.',
    remedy: 'set it to scheme, host and port without a path, such as https://chat.example.com,http://localhost:3000, or to *',
    chart: 'gateway.corsOrigins',
  }),
  upstreamCaFile: optionalText({
    about: 'File with more CA certificates (PEM) for model servers with `https` URLs.',
    remedy: 'set it to the path of a file',
    chart: 'gateway.upstreamCaSecret',
  }),
  tokenHold: oneOf(['Declared', 'Expected'], {
    default: 'Declared',
    about:
      'What a call holds of tokens per minute for its answer. `Declared`: all that it declares, so that no minute exceeds the limit. `Expected`: what such calls use, for clients that declare far more than they use; a minute may then exceed the limit, and the next ones repay it.',
  }),
  countTokensPerMinute: wholeNumber(1, 10_000, {
    default: 120,
    about: 'Calls of `/v1/messages/count_tokens` per minute of one key on one pod. They cost nothing and count for no other limit.',
  }),
  limitsWaitMs: wholeNumber(50, 5_000, {
    default: 500,
    about:
      'Longest wait of a call for the answer of Redis about its limits, ms. The next calls do not wait until Redis answers again. Time in which the pod itself is too busy to read answers does not count.',
  }),
  uvThreadpoolSize: wholeNumber(4, 128, {
    default: 4,
    about:
      'Threads of Node for look-ups of names, files and compression. All but two may wait for name servers at the same time, at most one for each namespace. The image sets 16.',
  }),
  maxReplicas: wholeNumber(1, 10_000, {
    default: 20,
    about:
      'Maximum number of gateway pods. Until a pod has counted its peers, it assumes this many when it divides a limit while Redis is away (`LocalShare`).',
    chart: 'gateway.maxReplicas',
  }),
})

export type GatewayConfig = z.output<typeof GATEWAY_SETTINGS> & { readonly redis: RedisSettings }

export function loadConfig(env: NodeJS.ProcessEnv): GatewayConfig {
  const read = readEnv(GATEWAY_SETTINGS, env)
  return { ...read, redis: redisSettings(read) }
}

export type GatewaySettings = Omit<GatewayConfig, 'redisURL' | 'redis'>

/** The defaults with some changes, for a gateway inside another program. */
export function settingsWith(changes: Partial<GatewaySettings>): GatewaySettings {
  return { ...readEnv(GATEWAY_SETTINGS.omit({ redisURL: true }), {}), ...changes }
}

function forwardable(text: string, context: z.RefinementCtx): ReadonlySet<string> {
  try {
    return forwardedHeaders(text.split(','))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    context.addIssue({ code: 'custom', message: error.message })
    return z.NEVER
  }
}

function browserOrigins(text: string, context: z.RefinementCtx): ReadonlySet<string> {
  try {
    return corsOrigins(text)
  } catch (error) {
    context.addIssue({ code: 'custom', message: error instanceof RangeError ? error.message : 'cannot be read' })
    return z.NEVER
  }
}

/** Size of the largest text that is parsed whole, bytes. */
export function largestText({
  maxBodyBytes,
  maxTranslatedAnswerBytes,
}: Pick<GatewaySettings, 'maxBodyBytes' | 'maxTranslatedAnswerBytes'>): number {
  return Math.max(maxBodyBytes, maxTranslatedAnswerBytes)
}
