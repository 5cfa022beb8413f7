/** Reads settings from environment variables and reports every fault at once. Used by the config.ts files, which own the schemas. */
import { z } from 'zod'
import { Misconfigured } from './lifecycle.ts'

/** What the documents and a fault say about one setting. */
export interface SettingText {
  /** One sentence for the table in the README. */
  readonly about: string
  /** What to do when the value is wrong: "set it to …". */
  readonly remedy: string
  /** The value must never be printed. */
  readonly secret?: boolean
}

const texts = z.registry<SettingText>()

/** Attaches the words of a setting to its schema. */
export function setting<T extends z.ZodType>(schema: T, text: SettingText): T {
  texts.add(schema, text)
  return schema
}

/** The environment of this process; the one place that touches it. */
export function processEnv(): NodeJS.ProcessEnv {
  return process.env
}

/**
 * Reads all settings of a schema whose keys are the names of the variables. An empty variable counts as absent.
 * @throws Misconfigured with one line per fault: name, reason, remedy
 */
export function readEnv<S extends z.ZodRawShape>(schema: z.ZodObject<S>, env: NodeJS.ProcessEnv): z.output<z.ZodObject<S>> {
  const given = Object.fromEntries(Object.keys(schema.shape).flatMap((name) => (env[name] ? [[name, env[name]]] : [])))
  const result = schema.safeParse(given)
  if (result.success) return result.data
  throw new Misconfigured(result.error.issues.map((issue) => errorLine(schema, issue, given)))
}

/** One row of the settings table. */
export interface SettingRow extends SettingText {
  readonly name: string
  /** As written in the environment; undefined when the setting is required or absent by default. */
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
