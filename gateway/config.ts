/** The settings of a gateway: one schema and its reader. A test holds the table in README.md equal to the schema. */
import { hostname } from 'node:os'
import { z } from 'zod'
import { readEnv, setting } from '#platform/settings.ts'
import type { BudgetStatus } from './errors.ts'
import type { TokenHold } from './limits/call-limits.ts'
import { LOG_LEVELS } from '#platform/log.ts'
import { isRedisUrl, type RedisSettings } from '#platform/redis-connection.ts'
import { forwardedHeaders } from './upstream/upstream-headers.ts'

/** Settings after reading. */
export interface GatewayConfig {
  /** 0: the kernel chooses a free port. The same holds for `metricsPort`. */
  readonly port: number
  readonly metricsPort: number
  readonly redis: RedisSettings
  readonly redisKeyPrefix: string
  readonly podName: string
  readonly keyringDir: string | undefined
  readonly coldStart: 'Keyring' | 'RequireRedis'
  readonly accessLog: 'errors' | 'sample' | 'all'
  readonly logLevel: (typeof LOG_LEVELS)[number]
  readonly maxBodyBytes: number
  readonly deregistrationMs: number
  readonly drainMs: number
  /** Whether `x-api-key` is an alias of `Authorization: Bearer`. */
  readonly apiKeyHeader: boolean
  /** Names of all request headers that are forwarded to model servers, in lower case. */
  readonly forwardedHeaders: ReadonlySet<string>
  readonly upstreamCaFile: string | undefined
  readonly tokenHold: TokenHold
  readonly budgetStatus: BudgetStatus
  readonly maxReplicas: number
}

/** Half of what V8 can hold as one string, 512 MiB. */
const LARGEST_BODY_BYTES = 2 ** 28

/** Variables by name, in the order of the documents. */
export const GATEWAY_SETTINGS = z.object({
  PORT: setting(port(8080), { about: 'Port of the API.', remedy: 'set it to a free port from 0 to 65535, usually 8080' }),
  METRICS_PORT: setting(port(9090), {
    about: 'Port of `/healthz`, `/readyz` and `/metrics`.',
    remedy: 'set it to a free port from 0 to 65535, usually 9090',
  }),
  REDIS_URL: setting(z.string().refine(isRedisUrl, 'is not the URL of a Redis'), {
    about: 'Redis with the projection: `redis://host:6379` or, with TLS, `rediss://…`; may hold user, password and `/database`.',
    remedy: 'set it to redis://host:port or rediss://host:port; a % in a password is written %25',
    secret: true,
  }),
  REDIS_USERNAME: setting(z.string().optional(), {
    about: 'User of Redis; wins over the one in `REDIS_URL`.',
    remedy: 'set it to an ACL user',
  }),
  REDIS_PASSWORD: setting(z.string().optional(), {
    about: 'Password of that user; wins over the one in `REDIS_URL`.',
    remedy: 'set it to the password',
    secret: true,
  }),
  REDIS_CA_FILE: setting(z.string().optional(), {
    about: 'File with the CA certificates of Redis (PEM), for `rediss://` with a private CA.',
    remedy: 'set it to the path of a file',
  }),
  REDIS_KEY_PREFIX: setting(
    z
      .string()
      .regex(/^[0-9A-Za-z:_-]{1,32}$/, 'has characters other than letters, digits, : _ - or more than 32 of them')
      .default('hg'),
    {
      about: 'Prefix of every Redis key; the same as that of the operator.',
      remedy: 'set it to the prefix of the operator, usually hg',
    },
  ),
  POD_NAME: setting(
    z
      .string()
      .regex(/^[^/\s]{1,253}$/, 'is not a pod name')
      .optional(),
    {
      about: 'Name of this pod, as in its EndpointSlice. Default: the name of the host.',
      remedy: 'set it from metadata.name by the downward API',
    },
  ),
  KEYRING_DIR: setting(z.string().optional(), {
    about:
      'Folder where the keyring, model and upstream Secrets are mounted: for a start without Redis, revocation while it is away, and upstream tokens.',
    remedy: 'set it to the mount path',
  }),
  COLD_START: setting(oneOf(['Keyring', 'RequireRedis']).default('Keyring'), {
    about: 'Whether a pod that finds no projection for 5 s serves from `KEYRING_DIR`.',
    remedy: 'set it to Keyring or RequireRedis',
  }),
  ACCESS_LOG: setting(oneOf(['errors', 'sample', 'all']).default('sample'), {
    about:
      '`errors`: failures of the gateway or a backend, at most ten lines per second of each kind. `sample`: those and 1 % of the rest. `all`: every request.',
    remedy: 'set it to errors, sample or all',
  }),
  LOG_LEVEL: setting(oneOf(LOG_LEVELS).default('info'), {
    about: 'Least important log lines to write.',
    remedy: `set it to ${LOG_LEVELS.join(', ')}`,
  }),
  MAX_BODY_BYTES: setting(wholeNumber(1_024, LARGEST_BODY_BYTES).default(33_554_432), {
    about: 'Largest request body, bytes.',
    remedy: `set it to a number of bytes from 1024 to ${LARGEST_BODY_BYTES}`,
  }),
  DEREGISTRATION_SECONDS: setting(wholeNumber(0, 300).default(5), {
    about:
      'How long a pod goes on taking requests after SIGTERM, s, at least: Services and ingresses forget its endpoint only some time later.',
    remedy: 'set it to a number of seconds from 0 to 300',
  }),
  DRAIN_SECONDS: setting(wholeNumber(0, 3_600).default(60), {
    about: 'How long running answers may go on after that, s. The grace period of the pod is longer than both together.',
    remedy: 'set it to a number of seconds from 0 to 3600',
  }),
  API_KEY_HEADER: setting(oneOf(['on', 'off']).default('on'), {
    about: 'Whether `x-api-key` counts as a credential beside `Authorization: Bearer`.',
    remedy: 'set it to on or off',
  }),
  FORWARD_HEADERS: setting(z.string().default('').transform(forwardable), {
    about: 'More request headers to forward to model servers, separated by commas.',
    remedy: 'set it to header names such as x-tenant,x-trace; credentials, cookies and connection headers are never forwarded',
  }),
  UPSTREAM_CA_FILE: setting(z.string().optional(), {
    about: 'File with more CA certificates (PEM) for model servers behind `https`.',
    remedy: 'set it to the path of a file',
  }),
  TOKEN_HOLD: setting(oneOf(['Declared', 'Expected']).default('Declared'), {
    about:
      'What a call holds of tokens per minute for its answer. `Declared`: all that it declares, so that no minute exceeds the limit. `Expected`: what such calls use, for clients that declare far more than they use; a minute may then exceed the limit, and the next ones repay it.',
    remedy: 'set it to Declared or Expected',
  }),
  BUDGET_STATUS: setting(oneOf(['402', '429']).default('402'), {
    about: 'Status of a call that a budget refuses.',
    remedy: 'set it to 402 or 429',
  }),
  MAX_REPLICAS: setting(wholeNumber(1, 10_000).default(20), {
    about:
      'Most gateway pods that there may be: a pod that has not counted the others yet takes its share of a limit for one of so many while Redis is away (`LocalShare`).',
    remedy: 'set it to a number from 1 to 10000',
  }),
})

/** Reads the settings. @throws Misconfigured with one line per error */
export function loadConfig(env: NodeJS.ProcessEnv): GatewayConfig {
  const read = readEnv(GATEWAY_SETTINGS, env)
  return {
    port: read.PORT,
    metricsPort: read.METRICS_PORT,
    redis: { url: read.REDIS_URL, username: read.REDIS_USERNAME, password: read.REDIS_PASSWORD, caFile: read.REDIS_CA_FILE },
    redisKeyPrefix: read.REDIS_KEY_PREFIX,
    podName: read.POD_NAME ?? hostname(),
    keyringDir: read.KEYRING_DIR,
    coldStart: read.COLD_START,
    accessLog: read.ACCESS_LOG,
    logLevel: read.LOG_LEVEL,
    maxBodyBytes: read.MAX_BODY_BYTES,
    deregistrationMs: read.DEREGISTRATION_SECONDS * 1_000,
    drainMs: read.DRAIN_SECONDS * 1_000,
    apiKeyHeader: read.API_KEY_HEADER === 'on',
    forwardedHeaders: read.FORWARD_HEADERS,
    upstreamCaFile: read.UPSTREAM_CA_FILE,
    tokenHold: read.TOKEN_HOLD,
    budgetStatus: read.BUDGET_STATUS === '429' ? 429 : 402,
    maxReplicas: read.MAX_REPLICAS,
  }
}

function port(fallback: number) {
  return wholeNumber(0, 65_535).default(fallback)
}

function wholeNumber(min: number, max: number) {
  const reason = `is not a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,10}$/, reason)
    .transform(Number)
    .pipe(z.number().min(min, reason).max(max, reason))
}

function oneOf<const T extends readonly string[]>(values: T) {
  return z.enum(values, { error: `is none of ${values.join(', ')}` })
}

function forwardable(text: string, context: z.RefinementCtx): ReadonlySet<string> {
  try {
    return forwardedHeaders(text.split(','))
  } catch {
    context.addIssue({ code: 'custom', message: 'contains a text that is not a header name, or a header that is never forwarded' })
    return z.NEVER
  }
}
