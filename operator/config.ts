/** The settings of the operator: one schema, the only reader of its environment. */
import { z } from 'zod'
import { readEnv, setting } from '#platform/settings.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import { LOG_LEVELS } from '#platform/log.ts'
import { isRedisUrl, type RedisSettings } from '#platform/redis-connection.ts'
import { DNS_LABEL } from '#contract/values/name-patterns.ts'
import type { LeaseTimes } from '#kube/leader.ts'

const seconds = (fallback: number) => z.coerce.number().positive().max(3600).default(fallback)
const label = z.string().regex(new RegExp(DNS_LABEL), 'is no name of a Kubernetes object')
const count = (fallback: number) => z.coerce.number().int().min(1).max(1_000_000).default(fallback)
const bytes = (fallback: number) => z.coerce.number().int().min(8_192).max(1_073_741_824).default(fallback)
const publishers = z
  .string()
  .refine((text) => namesIn(text).every((name) => name === '*' || label.safeParse(name).success), 'holds what is no name of a namespace')
const namespaceList = z
  .string()
  .refine((text) => namesIn(text).every((name) => label.safeParse(name).success), 'holds what is no name of a namespace')

const schema = z.object({
  NAMESPACE: setting(label, {
    about: 'The namespace of the operator: Lease, keyring and gateways live there.',
    remedy: 'set it by the downward API (metadata.namespace)',
  }),
  POD_NAME: setting(z.string().min(1).max(253), {
    about: 'Name of this pod, for the Lease and Events.',
    remedy: 'set it by the downward API (metadata.name)',
  }),
  REDIS_URL: setting(z.string().refine(isRedisUrl, 'is no redis:// or rediss:// URL'), {
    about: 'Redis, as redis:// or rediss:// URL.',
    remedy: 'set it to redis://<host>:<port>; a % in a password is written %25',
    secret: true,
  }),
  REDIS_USERNAME: setting(z.string().optional(), {
    about: 'ACL user; overrides the one in REDIS_URL.',
    remedy: 'set it to the ACL user of the operator',
  }),
  REDIS_PASSWORD: setting(z.string().optional(), {
    about: 'Password; overrides the one in REDIS_URL.',
    remedy: 'set it from a Secret',
    secret: true,
  }),
  REDIS_CA_FILE: setting(z.string().optional(), { about: 'CA certificates (PEM) for rediss://.', remedy: 'set it to a mounted file' }),
  REDIS_KEY_PREFIX: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9:_-]{1,32}$/, 'is no key prefix')
      .default('hg'),
    {
      about: 'Prefix of every Redis key; the same as that of the gateways.',
      remedy: 'use 1 to 32 of A-Z a-z 0-9 : _ -',
    },
  ),
  KEYRING_SHARDS: setting(z.coerce.number().int().min(1).max(1024).default(64), {
    about: 'Number of Secrets of the keyring; the same as the gateways mount.',
    remedy: 'set it to 1…1024',
  }),
  PUBLIC_URL: setting(z.url({ protocol: /^https?$/, error: 'is no http(s) URL' }), {
    about: 'Base URL of the gateways as clients reach them, without /v1; user Secrets are made of it.',
    remedy: 'set it to http(s)://<host> without /v1',
  }),
  GATEWAY_SERVICE: setting(label.default('headgate-gateway'), {
    about: 'Service of the gateways in NAMESPACE; its endpoints are the pods that must acknowledge.',
    remedy: 'set it to the name of that Service',
  }),
  WATCH_NAMESPACES: setting(namespaceList.default(''), {
    about: 'Namespaces to watch, separated by commas; empty: all.',
    remedy: 'list names of namespaces',
  }),
  FORMER_NAMESPACES: setting(namespaceList.default(''), {
    about: 'Namespaces that were watched before, separated by commas: their ApiKeys are released and their keys revoked.',
    remedy: 'list names of namespaces',
  }),
  NAMESPACE_LABELS: setting(z.enum(['on', 'off', '']).default(''), {
    about: 'Whether labels of namespaces are read, for allowedNamespaces with a selector; empty: on where all namespaces are watched.',
    remedy: 'set it to on or off',
  }),
  MAX_API_KEYS_PER_NAMESPACE: setting(count(2_000), {
    about: 'Most ApiKeys of one namespace, those deleted within 24 hours included.',
    remedy: 'set it to 1…1000000',
  }),
  MAX_MODEL_BYTES_PER_NAMESPACE: setting(bytes(2_097_152), {
    about: 'Most bytes of model names in spec.models of all ApiKeys of one namespace.',
    remedy: 'set it to 8192…1073741824',
  }),
  MAX_SERVED_MODELS_PER_NAMESPACE: setting(count(200), {
    about: 'Most ServedModels of one namespace.',
    remedy: 'set it to 1…1000000',
  }),
  PUBLISHING_NAMESPACES: setting(publishers.default(''), {
    about: 'Namespaces whose ServedModels other namespaces may use, separated by commas; * = any; empty: NAMESPACE.',
    remedy: 'list names of namespaces, or *',
  }),
  REDIS_TAKE_OVER: setting(z.enum(['true', 'false']).default('false'), {
    about: 'true: replace the projection of another installation in this Redis. Set it once, after a disaster.',
    remedy: 'set it to true or false',
  }),
  REVOCATION_WAIT_SECONDS: setting(seconds(30), {
    about: 'Longest wait for the gateways before a deleted ApiKey is removed.',
    remedy: 'set it to 1…3600',
  }),
  METRICS_PORT: setting(z.coerce.number().int().min(0).max(65535).default(9090), {
    about: 'Port of /livez, /readyz and /metrics.',
    remedy: 'set it to a free port',
  }),
  LOG_LEVEL: setting(z.enum(LOG_LEVELS).default('info'), {
    about: 'Least level that is logged.',
    remedy: `set it to one of ${LOG_LEVELS.join(', ')}`,
  }),
  LEASE_DURATION_SECONDS: setting(seconds(15), {
    about: 'A standby takes over when the Lease stood still for this long.',
    remedy: 'keep duration > renew > 1.2 × retry',
  }),
  LEASE_RENEW_SECONDS: setting(seconds(10), {
    about: 'The leader gives up when it could not renew for this long.',
    remedy: 'keep duration > renew > 1.2 × retry',
  }),
  LEASE_RETRY_SECONDS: setting(seconds(2), {
    about: 'Time between two tries of the election.',
    remedy: 'keep duration > renew > 1.2 × retry',
  }),
})

/** The schema itself, for the table in the README. */
export const operatorSettings = schema

/** The parsed settings. */
export interface OperatorConfig {
  readonly namespace: string
  readonly podName: string
  readonly redis: RedisSettings
  readonly redisKeyPrefix: string
  readonly keyringShards: number
  /** Without a slash at the end. */
  readonly publicURL: string
  readonly gatewayService: string
  /** Empty = all. */
  readonly watchNamespaces: readonly string[]
  readonly formerNamespaces: readonly string[]
  /** Whether Namespaces are watched for their labels. */
  readonly readsNamespaces: boolean
  readonly maxApiKeysPerNamespace: number
  readonly maxModelBytesPerNamespace: number
  readonly maxServedModelsPerNamespace: number
  /** `*` = any. */
  readonly publishingNamespaces: readonly string[]
  readonly redisTakeOver: boolean
  readonly revocationWaitMs: number
  readonly metricsPort: number
  readonly logLevel: (typeof LOG_LEVELS)[number]
  readonly leaseTimes: LeaseTimes
}

/** @throws Misconfigured with one line per error */
export function loadConfig(env: NodeJS.ProcessEnv): OperatorConfig {
  const read = readEnv(schema, env)
  const leaseTimes = {
    durationMs: read.LEASE_DURATION_SECONDS * 1000,
    renewMs: read.LEASE_RENEW_SECONDS * 1000,
    retryMs: read.LEASE_RETRY_SECONDS * 1000,
  }
  if (!(leaseTimes.durationMs > leaseTimes.renewMs && leaseTimes.renewMs > leaseTimes.retryMs * 1.2)) {
    throw new Misconfigured(
      'LEASE_DURATION_SECONDS > LEASE_RENEW_SECONDS > 1.2 × LEASE_RETRY_SECONDS must hold; raise the first or lower the last',
    )
  }
  return {
    namespace: read.NAMESPACE,
    podName: read.POD_NAME,
    redis: { url: read.REDIS_URL, username: read.REDIS_USERNAME, password: read.REDIS_PASSWORD, caFile: read.REDIS_CA_FILE },
    redisKeyPrefix: read.REDIS_KEY_PREFIX,
    keyringShards: read.KEYRING_SHARDS,
    publicURL: read.PUBLIC_URL.replace(/\/+$/, '').replace(/\/v1$/, ''),
    gatewayService: read.GATEWAY_SERVICE,
    watchNamespaces: namesIn(read.WATCH_NAMESPACES),
    formerNamespaces: namesIn(read.FORMER_NAMESPACES),
    readsNamespaces: read.NAMESPACE_LABELS === '' ? read.WATCH_NAMESPACES === '' : read.NAMESPACE_LABELS === 'on',
    maxApiKeysPerNamespace: read.MAX_API_KEYS_PER_NAMESPACE,
    maxModelBytesPerNamespace: read.MAX_MODEL_BYTES_PER_NAMESPACE,
    maxServedModelsPerNamespace: read.MAX_SERVED_MODELS_PER_NAMESPACE,
    publishingNamespaces: read.PUBLISHING_NAMESPACES === '' ? [read.NAMESPACE] : namesIn(read.PUBLISHING_NAMESPACES),
    redisTakeOver: read.REDIS_TAKE_OVER === 'true',
    revocationWaitMs: read.REVOCATION_WAIT_SECONDS * 1000,
    metricsPort: read.METRICS_PORT,
    logLevel: read.LOG_LEVEL,
    leaseTimes,
  }
}

function namesIn(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}
