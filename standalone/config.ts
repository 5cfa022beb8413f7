/** The settings of `make run`: one entry each. */
import { z } from 'zod'
import { flag, logLevel, oneOf, optionalRedisURL, port, readEnv, redisKeyPrefix, setting } from '#platform/settings.ts'

/** The settings by name, in the order of the documents. The variable of `logFormat` is `LOG_FORMAT`. */
export const STANDALONE_SETTINGS = z.object({
  port: port({ default: 8080, about: 'Port of the API, of health and of metrics. 0: any free one.' }),
  host: setting(
    z
      .string()
      .regex(/^[0-9A-Za-z.:_-]{1,253}$/, 'is not an IP address or a host name')
      .default('127.0.0.1'),
    {
      about: 'Address to listen on. 0.0.0.0 or ::: all addresses, for a dev container or for other machines.',
      remedy: 'set it to 127.0.0.1, to 0.0.0.0 for all addresses, or unset it',
    },
  ),
  manifests: setting(z.string().default('examples/standalone').transform(withoutSlash), {
    about: 'Folder of manifests (.yaml, .yml, .json) that is followed. Default: examples/standalone.',
    remedy: 'set it to a folder of manifests',
  }),
  pruneAll: flag({
    default: false,
    about: 'true: a folder without manifests, or another folder than before, deletes the objects of the missing manifests.',
  }),
  redisURL: optionalRedisURL('A real Redis for the projection instead of memory.'),
  redisKeyPrefix: redisKeyPrefix(),
  redisTakeOver: flag({ default: false, about: 'true: replace the keys of another installation in that Redis. Set it once.' }),
  modelURL: setting(
    z
      .string()
      .refine((url) => !url.includes('@'), 'contains @, and this URL must not hold a user name or a password')
      .refine((url) => url.includes('@') || isBaseURL(url), 'is not of the form http(s)://host[:port][/path]')
      .transform((url) => url.replace(/\/+$/, '').replace(/\/v1$/, ''))
      .optional(),
    {
      about: 'A real model server instead of the stub: the base URL in front of /v1. Its token goes into a Secret (authSecretRef).',
      remedy: 'set it to http://<host>:<port>, or unset it',
    },
  ),
  dashboard: setting(
    z
      .enum(['0', '1', 'false', 'true'], { error: 'is neither 0 nor 1' })
      .default('1')
      .transform((word) => word === '1' || word === 'true'),
    { about: 'Whether the dashboard is started. 0: without it.', remedy: 'set it to 0 or 1' },
  ),
  dashboardPort: port({ default: 8090, about: 'Port of the dashboard. 0: any free one.' }),
  payments: oneOf(['manual', 'stand-in'], {
    default: 'manual',
    about: 'How people pay: `manual` by `headgate credit add`, `stand-in` at a page that stands for Stripe.',
  }),
  accessLog: oneOf(['errors', 'sample', 'all'], {
    default: 'all',
    about: 'Which requests are logged: failures, failures and 1 in 100, or all.',
  }),
  logLevel: logLevel(),
  logFormat: oneOf(['auto', 'text', 'json'], {
    default: 'auto',
    about: 'Log lines for people (text) or for programs (json). auto: text on a terminal, json elsewhere.',
  }),
})

/** The parsed settings. URL and folder have no slash at the end, and the URL no `/v1`. */
export type StandaloneConfig = z.output<typeof STANDALONE_SETTINGS>

/** @throws Misconfigured with one line per wrong setting */
export function loadConfig(env: NodeJS.ProcessEnv): StandaloneConfig {
  return readEnv(STANDALONE_SETTINGS, env)
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
