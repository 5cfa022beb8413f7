/** Reads settings from environment variables and reports all errors at once. The config.ts files own the schemas. */
import { z } from 'zod'
import { Misconfigured } from './lifecycle.ts'

/** Texts about a setting for documents and errors. */
export interface SettingText {
  /** One sentence for the table in the README. */
  readonly about: string
  /** The remedy for a wrong value: "set it to …". */
  readonly remedy: string
  /** Whether the value is secret. Secret values are never printed. */
  readonly secret?: boolean
}

const texts = z.registry<SettingText>()

/** Attaches the description of a setting to its schema. */
export function setting<T extends z.ZodType>(schema: T, text: SettingText): T {
  texts.add(schema, text)
  return schema
}

/** The environment of this process. No other code reads `process.env`. */
export function processEnv(): NodeJS.ProcessEnv {
  return process.env
}

/**
 * Reads all settings of a schema whose keys are names of variables. An empty variable counts as absent.
 * @throws Misconfigured with one line per error: name, reason, remedy
 */
export function readEnv<S extends z.ZodRawShape>(schema: z.ZodObject<S>, env: NodeJS.ProcessEnv): z.output<z.ZodObject<S>> {
  const given = Object.fromEntries(Object.keys(schema.shape).flatMap((name) => (env[name] ? [[name, env[name]]] : [])))
  const result = schema.safeParse(given)
  if (result.success) return result.data
  throw new Misconfigured(result.error.issues.map((issue) => errorLine(schema, issue, given)))
}

/** A row of the table of settings. */
export interface SettingRow extends SettingText {
  readonly name: string
  /** The default as written in the environment; undefined if the setting is required or has no default. */
  readonly fallback: string | undefined
  readonly required: boolean
}

/** Describes every setting, for the README. */
export function settingRows(schema: z.ZodObject): readonly SettingRow[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const text = texts.get(field)
    if (!text) throw new TypeError(`setting ${name} has no text`)
    const empty = z.safeParse(field, undefined)
    const fallback = field instanceof z.ZodDefault || field instanceof z.ZodPrefault ? String(field.def.defaultValue) : undefined
    return { ...text, name, fallback, required: !empty.success }
  })
}

function errorLine(schema: z.ZodObject, issue: z.core.$ZodIssue, given: Record<string, unknown>): string {
  const name = String(issue.path[0] ?? '')
  const field = schema.shape[name]
  const text = field && texts.get(field)
  if (!(name in given)) return `${name}: is not set; ${text?.remedy ?? 'set it'}`
  return `${name}: ${shown(given[name], text?.secret)} ${issue.message}; ${text?.remedy ?? 'correct it'}`
}

/** A value with @ may be a URL with a password. */
function shown(value: unknown, isSecret = false): string {
  return isSecret || (typeof value === 'string' && value.includes('@')) ? 'the value' : JSON.stringify(value)
}
