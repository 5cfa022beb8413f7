/** The settings of `make run`: one schema, the only reader of its environment. */
import { z } from 'zod'
import { readEnv, setting } from '#platform/settings.ts'
import { LOG_LEVELS } from '#platform/log.ts'
import { isRedisUrl } from '#platform/redis-connection.ts'

const NO_PORT = 'is not a whole number from 0 to 65535'
const NO_HOST = 'is not an IP address or a host name'

const schema = z.object({
  PORT: setting(
    z
      .string()
      .regex(/^\d{1,5}$/, NO_PORT)
      .transform(Number)
      .pipe(z.number().max(65_535, NO_PORT))
      .default(8080),
    { about: 'Port of the API, of health and of metrics. 0: any free one.', remedy: 'set it to a free port, such as 8080' },
  ),
  HOST: setting(
    z
      .string()
      .regex(/^[0-9A-Za-z.:_-]{1,253}$/, NO_HOST)
      .default('127.0.0.1'),
    {
      about: 'Address to listen on. 0.0.0.0 or ::: all addresses, for a dev container or for other machines.',
      remedy: 'set it to 127.0.0.1, to 0.0.0.0 for all addresses, or unset it',
    },
  ),
  MANIFESTS: setting(z.string().default('examples/standalone'), {
    about: 'Folder of manifests (.yaml, .yml, .json) that is followed.',
    remedy: 'set it to a folder of manifests',
  }),
  PRUNE_ALL: setting(z.enum(['true', 'false']).default('false'), {
    about: 'true: a folder without manifests, or another folder than before, deletes the objects of the missing manifests.',
    remedy: 'set it to true or false',
  }),
  REDIS_URL: setting(z.string().refine(isRedisUrl, 'is not a redis:// or rediss:// URL').optional(), {
    about: 'A real Redis for the projection instead of memory.',
    remedy: 'set it to redis://<host>:<port>, or unset it',
    secret: true,
  }),
  REDIS_KEY_PREFIX: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9:_-]{1,32}$/, 'is not a key prefix')
      .default('hg'),
    {
      about: 'Prefix of every key in that Redis.',
      remedy: 'set it to at most 32 letters, digits, ":", "_" and "-"',
    },
  ),
  REDIS_TAKE_OVER: setting(z.enum(['true', 'false']).default('false'), {
    about: 'true: replace the keys of another installation in that Redis. Set it once.',
    remedy: 'set it to true or false',
  }),
  MODEL_URL: setting(
    z
      .string()
      .refine((url) => !url.includes('@'), 'contains @, and this URL must not hold a user name or a password')
      .refine((url) => url.includes('@') || isBaseURL(url), 'is not of the form http(s)://host[:port][/path]')
      .optional(),
    {
      about: 'A real model server instead of the stub: the base URL in front of /v1. Its token goes into a Secret (authSecretRef).',
      remedy: 'set it to http://<host>:<port>, or unset it',
    },
  ),
  ACCESS_LOG: setting(z.enum(['errors', 'sample', 'all'], { error: 'is none of errors, sample, all' }).default('all'), {
    about: 'Which requests are logged: failures, failures and 1 in 100, or all.',
    remedy: 'set it to errors, sample or all',
  }),
  LOG_LEVEL: setting(z.enum(LOG_LEVELS, { error: `is none of ${LOG_LEVELS.join(', ')}` }).default('info'), {
    about: 'Least important log lines to write.',
    remedy: `set it to one of ${LOG_LEVELS.join(', ')}`,
  }),
  LOG_FORMAT: setting(z.enum(['auto', 'text', 'json'], { error: 'is none of auto, text, json' }).default('auto'), {
    about: 'Log lines for people (text) or for programs (json). auto: text on a terminal, json elsewhere.',
    remedy: 'set it to auto, text or json',
  }),
})

/** The schema itself, for the table in the README. */
export const standaloneSettings = schema

/** The parsed settings. */
export interface StandaloneConfig {
  readonly port: number
  readonly host: string
  readonly manifests: string
  readonly prunesAll: boolean
  readonly redisURL: string | undefined
  readonly redisKeyPrefix: string
  readonly redisTakeOver: boolean
  /** Without `/v1` and without a slash at the end. */
  readonly modelURL: string | undefined
  readonly accessLog: 'errors' | 'sample' | 'all'
  readonly logLevel: (typeof LOG_LEVELS)[number]
  readonly logFormat: 'auto' | 'text' | 'json'
}

/** @throws Misconfigured with one line per wrong setting */
export function loadConfig(env: NodeJS.ProcessEnv): StandaloneConfig {
  const read = readEnv(schema, env)
  return {
    port: read.PORT,
    host: read.HOST,
    manifests: withoutSlash(read.MANIFESTS),
    prunesAll: read.PRUNE_ALL === 'true',
    redisURL: read.REDIS_URL,
    redisKeyPrefix: read.REDIS_KEY_PREFIX,
    redisTakeOver: read.REDIS_TAKE_OVER === 'true',
    modelURL: read.MODEL_URL?.replace(/\/+$/, '').replace(/\/v1$/, ''),
    accessLog: read.ACCESS_LOG,
    logLevel: read.LOG_LEVEL,
    logFormat: read.LOG_FORMAT,
  }
}

/** The rule of `url` in a backend: no query and no fragment, because they may contain credentials. */
function isBaseURL(url: string): boolean {
  return URL.canParse(url) && /^https?:\/\/[^?#\s]+$/i.test(url)
}

/** Reads the environment of `make status`. @returns the folder in MANIFESTS; undefined if it is not set */
export function loadStatusConfig(env: NodeJS.ProcessEnv): { readonly manifests: string | undefined } {
  return { manifests: env['MANIFESTS'] ? withoutSlash(env['MANIFESTS']) : undefined }
}

function withoutSlash(folder: string): string {
  return folder.replace(/(?<=.)\/+$/, '')
}
