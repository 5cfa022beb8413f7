/** The settings of `make run`: one schema, the only reader of its environment. */
import { z } from 'zod'
import { readEnv, setting } from '../gateway/process/env.ts'
import { LOG_LEVELS } from '../gateway/process/log.ts'

const schema = z.object({
  PORT: setting(z.coerce.number().int().min(0).max(65_535).default(8080), {
    about: 'Port of the API, of health and of metrics, on 127.0.0.1. 0: any free one.',
    remedy: 'set it to a free port',
  }),
  MANIFESTS: setting(z.string().default('examples/standalone'), {
    about: 'Folder of manifests (.yaml, .yml, .json) that is followed.',
    remedy: 'set it to a folder of manifests',
  }),
  REDIS_URL: setting(z.url({ protocol: /^rediss?$/, error: 'is no redis:// or rediss:// URL' }).optional(), {
    about: 'A real Redis for the projection instead of memory.',
    remedy: 'set it to redis://<host>:<port>, or unset it',
    secret: true,
  }),
  MODEL_URL: setting(z.url({ protocol: /^https?$/, error: 'is no http(s) URL' }).optional(), {
    about: 'A real model server instead of the stub: the base URL in front of /v1.',
    remedy: 'set it to http://<host>:<port>, or unset it',
  }),
  ACCESS_LOG: setting(z.enum(['errors', 'sample', 'all']).default('sample'), {
    about: 'Which requests are logged: failures, failures and 1 in 100, or all.',
    remedy: 'set it to errors, sample or all',
  }),
  LOG_LEVEL: setting(z.enum(LOG_LEVELS).default('info'), {
    about: 'Least level that is logged.',
    remedy: `set it to one of ${LOG_LEVELS.join(', ')}`,
  }),
})

/** The schema itself, for the table in the README. */
export const standaloneSettings = schema

/** Settings in the form in which the program uses them. */
export interface StandaloneConfig {
  readonly port: number
  readonly manifests: string
  readonly redisURL: string | undefined
  /** Without `/v1` and without a slash at the end. */
  readonly modelURL: string | undefined
  readonly accessLog: 'errors' | 'sample' | 'all'
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

/** @throws Misconfigured with one line per fault */
export function loadConfig(env: NodeJS.ProcessEnv): StandaloneConfig {
  const read = readEnv(schema, env)
  return {
    port: read.PORT,
    manifests: read.MANIFESTS.replace(/(?<=.)\/+$/, ''),
    redisURL: read.REDIS_URL,
    modelURL: read.MODEL_URL?.replace(/\/+$/, '').replace(/\/v1$/, ''),
    accessLog: read.ACCESS_LOG,
    logLevel: read.LOG_LEVEL,
  }
}
