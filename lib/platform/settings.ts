/**
 * Settings: one entry each, in the config.ts of its program. The entry is the source of the environment variable, its check and its error, the
 * page docs/settings.md and the schema of the chart's value (`generated-settings.ts`).
 */
import { z } from 'zod'
import { Misconfigured } from './lifecycle.ts'
import { LOG_LEVELS } from './log.ts'
import { isRedisUrl, type RedisSettings } from './redis-connection.ts'

/** Texts about a setting for documents and errors. */
export interface SettingText {
  /** One sentence for the page of settings. */
  readonly about: string
  /** The remedy for a wrong value: "set it to …". */
  readonly remedy: string
  /** Whether the value is secret. Secret values are never printed. */
  readonly secret?: boolean
  /** Where the chart sets the variable: the path of its own value, or `BY_CHART`. Default: `<program>.settings.<name>`. */
  readonly chart?: string
}

/** `chart` of a variable that follows from other values of the chart. */
export const BY_CHART = 'set by the chart'

/** A setting whose type knows the remedy. */
type Described = Omit<SettingText, 'remedy'> & Partial<Pick<SettingText, 'remedy'>>
type WithDefault<T> = Described & { readonly default: T }

const texts = z.registry<SettingText>()

/** Attaches the description of a setting to its schema. */
export function setting<T extends z.ZodType>(schema: T, text: SettingText): T {
  texts.add(schema, text)
  return schema
}

/** A whole number. */
export function wholeNumber(min: number, max: number, text: WithDefault<number>) {
  const reason = `is not a whole number from ${min} to ${max}`
  const number = z.int(reason).min(min, reason).max(max, reason)
  const schema = z
    .string()
    .regex(/^\d{1,10}$/, reason)
    .transform(Number)
    .pipe(number)
    .default(text.default)
  return setting(schema, { remedy: `set it to a number from ${min} to ${max}`, ...text })
}

/** A TCP port; 0 lets the kernel choose a free one. */
export function port(text: WithDefault<number>) {
  return wholeNumber(0, 65_535, { remedy: `set it to a free port, such as ${text.default}`, ...text })
}

/** A time in seconds, above 0 and at most an hour. */
export function seconds(text: WithDefault<number>) {
  const reason = 'is not a number of seconds above 0 and up to 3600'
  const schema = z.coerce.number(reason).positive(reason).max(3600, reason).default(text.default)
  return setting(schema, { remedy: 'set it to a number of seconds up to 3600', ...text })
}

/** One of several words. */
export function oneOf<const T extends readonly string[]>(values: T, text: WithDefault<T[number]>) {
  const schema = z.enum(values, { error: `is none of ${values.join(', ')}` }).default(() => text.default)
  return setting(schema, { remedy: `set it to ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`, ...text })
}

const isOn = z
  .enum(['true', 'false'], { error: 'is neither true nor false' })
  .transform((word) => word === 'true')
  .pipe(z.boolean())
const FLAG_REMEDY = 'set it to true or false'

/** `true` or `false`. */
export function flag(text: WithDefault<boolean>) {
  return setting(isOn.default(text.default), { remedy: FLAG_REMEDY, ...text })
}

/** `true`, `false` or absent. */
export function optionalFlag(text: Described) {
  return setting(isOn.optional(), { remedy: FLAG_REMEDY, ...text })
}

/** A text that may be absent. */
export function optionalText(text: SettingText) {
  return setting(z.string().optional(), text)
}

/** The least important level to log. */
export function logLevel() {
  return oneOf(LOG_LEVELS, { default: 'info', about: 'Minimum log level.' })
}

const redisURL = z.string().refine(isRedisUrl, 'is not the URL of a Redis')
const REDIS_URL_REMEDY = 'set it to redis://host:port or rediss://host:port; a % in a password is written %25'

/** The address of a Redis that may be absent. */
export function optionalRedisURL(about: string) {
  const schema = z.string().refine(isRedisUrl, 'is not a redis:// or rediss:// URL').optional()
  return setting(schema, { about, remedy: 'set it to redis://<host>:<port>, or unset it', secret: true })
}

/** What all keys of one installation begin with. */
export function redisKeyPrefix() {
  const reason = 'has characters other than letters, digits, : _ - or more than 32 of them'
  const schema = z
    .string()
    .regex(/^[0-9A-Za-z:_-]{1,32}$/, reason)
    .default('hg')
  const remedy = 'set it to the prefix of the other programs, usually hg'
  return setting(schema, { about: 'Prefix of every Redis key; the same for operator and gateways.', remedy, chart: 'redis.keyPrefix' })
}

/** The settings of a connection to Redis. */
export const REDIS_SETTINGS = {
  redisURL: setting(redisURL, {
    about: 'Redis: `redis://host:6379` or, with TLS, `rediss://…`; may hold user, password and `/database`.',
    remedy: REDIS_URL_REMEDY,
    secret: true,
    chart: 'redis.url',
  }),
  redisUsername: optionalText({
    about: 'ACL user of Redis; overrides the one in `REDIS_URL`.',
    remedy: 'set it to an ACL user',
    chart: 'redis.existingSecret',
  }),
  redisPassword: optionalText({
    about: 'Password of that user; overrides the one in `REDIS_URL`.',
    remedy: 'set it to the password',
    secret: true,
    chart: 'redis.existingSecret',
  }),
  redisCaFile: optionalText({
    about: 'File with the CA certificates of Redis (PEM), for `rediss://` with a private CA.',
    remedy: 'set it to the path of a file',
    chart: 'redis.caKey',
  }),
  redisKeyPrefix: redisKeyPrefix(),
}

/** The settings of the connection in one object. */
export function redisSettings(read: z.output<z.ZodObject<Omit<typeof REDIS_SETTINGS, 'redisKeyPrefix'>>>): RedisSettings {
  return { url: read.redisURL, username: read.redisUsername, password: read.redisPassword, caFile: read.redisCaFile }
}

/** The environment of this process. No other code reads `process.env`. */
export function processEnv(): NodeJS.ProcessEnv {
  return process.env
}

/** The environment variable of a setting: `MAX_BODY_BYTES` of `maxBodyBytes`. */
export function variableOf(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toUpperCase()
}

/**
 * Reads all settings of a schema. An empty variable counts as absent.
 * @throws Misconfigured with one line per error: variable, reason, remedy
 */
export function readEnv<S extends z.ZodRawShape>(schema: z.ZodObject<S>, env: NodeJS.ProcessEnv): z.output<z.ZodObject<S>> {
  const given = Object.fromEntries(
    Object.keys(schema.shape).flatMap((name) => {
      const value = env[variableOf(name)]
      return value ? [[name, value]] : []
    }),
  )
  const result = schema.safeParse(given)
  if (result.success) return result.data
  throw new Misconfigured(result.error.issues.map((issue) => errorLine(schema, issue, given)))
}

/** One setting, for generated files. */
export interface SettingRow extends SettingText {
  readonly name: string
  readonly variable: string
  /** The default as written in the environment; undefined if the setting is required or has no default. */
  readonly fallback: string | undefined
  readonly required: boolean
  /** JSON schema of the value that the program uses. */
  readonly json: z.core.JSONSchema.BaseSchema
}

/** Describes every setting. */
export function settingRows(schema: z.ZodObject): readonly SettingRow[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const text = texts.get(field)
    if (!text) throw new TypeError(`setting ${name} has no text`)
    const fallback = field instanceof z.ZodDefault ? String(field.def.defaultValue) : undefined
    const { $schema: _, default: __, ...json } = z.toJSONSchema(field, { unrepresentable: 'any' })
    return { ...text, name, variable: variableOf(name), fallback, required: !z.safeParse(field, undefined).success, json }
  })
}

function errorLine(schema: z.ZodObject, issue: z.core.$ZodIssue, given: Record<string, unknown>): string {
  const name = String(issue.path[0] ?? '')
  const field = schema.shape[name]
  const text = field && texts.get(field)
  const variable = variableOf(name)
  if (!(name in given)) return `${variable}: is not set; ${text?.remedy ?? 'set it'}`
  return `${variable}: ${shown(given[name], text?.secret)} ${issue.message}; ${text?.remedy ?? 'correct it'}`
}

/** A value with @ may be a URL with a password. */
function shown(value: unknown, isSecret = false): string {
  return isSecret || (typeof value === 'string' && value.includes('@')) ? 'the value' : JSON.stringify(value)
}
