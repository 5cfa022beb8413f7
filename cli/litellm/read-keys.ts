/**
 * Reads a file with virtual keys of LiteLLM, in any of the forms that LiteLLM and PostgreSQL give: the answers of `GET /key/list` with
 * `return_full_object=true` and of `GET /key/info`, rows of the table as JSON or CSV, and lists of all these.
 */
import { parse } from 'csv-parse/sync'
import { z } from 'zod'

/** Any JSON value; numbers are the text in the file. */
export type ExactJson = string | boolean | null | readonly ExactJson[] | { readonly [field: string]: ExactJson }

/** The third argument of a reviver, which TypeScript does not know yet: the text of a value (ECMA-262, JSON.parse source text access). */
type Reviver = (this: unknown, key: string, value: unknown, context?: { readonly source?: string }) => unknown

/** @throws SyntaxError if it is not JSON */
export function parseExactJson(text: string): ExactJson {
  const keepText: Reviver = (_key, value, context) => (typeof value === 'number' ? (context?.source ?? String(value)) : value)
  return JSON.parse(text, keepText) as ExactJson
}

/** Numbers are text here. PostgreSQL writes absent values of a CSV as empty text. */
export const optionalText = z
  .string()
  .nullish()
  .transform((text) => (text === null || text === '' ? undefined : text))

/** true and false; `t` and `f` in a CSV of PostgreSQL. */
const flag = z
  .union([z.boolean(), z.enum(['t', 'f', 'true', 'false', ''])])
  .nullish()
  .transform((value) => value === true || value === 't' || value === 'true')

/** A list; `{a,"b c"}` in a CSV of PostgreSQL. */
export const textList = z.preprocess(
  (value) => (typeof value === 'string' ? arrayLiteral(value) : value),
  z
    .array(z.string())
    .nullish()
    .transform((list) => list ?? []),
)

const exact: z.ZodType<ExactJson> = z.unknown().transform((value) => value as ExactJson)

/** A JSON object; its text in a CSV. */
const object = z.preprocess(
  (value) => (typeof value === 'string' ? parsed(value || 'null') : value),
  z
    .record(z.string(), exact)
    .nullish()
    .transform((value) => value ?? {}),
)

/** Fields of a key and of a team that say how much they may use. */
export const limitFields = {
  max_budget: optionalText,
  budget_duration: optionalText,
  spend: optionalText,
  tpm_limit: optionalText,
  rpm_limit: optionalText,
  max_parallel_requests: optionalText,
  blocked: flag,
}

const fields = {
  ...limitFields,
  token: z.string({ error: 'is missing' }),
  key_name: optionalText,
  key_alias: optionalText,
  models: textList,
  expires: optionalText,
  team_id: optionalText,
  user_id: optionalText,
  metadata: object,
}

/**
 * One virtual key: `LiteLLM_VerificationToken` in LiteLLM's `schema.prisma` and `litellm/models/verification_token.py`. Fields without a
 * counterpart are kept unchanged, for the report.
 */
export const litellmKey = z.looseObject(fields)
export type LiteLLMKey = z.infer<typeof litellmKey>
export type LimitFields = Pick<LiteLLMKey, keyof typeof limitFields>

/** Fields that the import reads. */
export const READ_FIELDS: ReadonlySet<string> = new Set(Object.keys(fields))

/** Parses the text of a PostgreSQL array or of a JSON array. @returns the text itself if it is neither */
function arrayLiteral(text: string): unknown {
  if (text.startsWith('[')) return parsed(text)
  if (!text.startsWith('{') || !text.endsWith('}')) return text === '' ? [] : text
  const entries = text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^",]+)/g)
  return Array.from(entries, ([, quoted, plain]) => (quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1')))
}

function parsed(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    return text // the schema refuses it, with the name of the field
  }
}

/** A key for which no manifest is written. */
export interface Refused {
  readonly place: string
  readonly alias: string | undefined
  readonly reason: string
  readonly remedy: string
}

/** One key of the file. */
export type ReadKey = { readonly ok: true; readonly place: string; readonly key: LiteLLMKey } | ({ readonly ok: false } & Refused)

/** The content of a file. */
export interface KeyFile {
  readonly keys: readonly ReadKey[]
  /** Notes about the file as a whole. */
  readonly notes: readonly string[]
}

/** One key cannot be converted. The message is the reason, and never holds a value. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly remedy: string

  constructor(reason: string, remedy: string) {
    super(reason)
    this.remedy = remedy
  }
}

/** The file as a whole cannot be used. The message names the reason and the remedy. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile'
}

type Json = Readonly<Record<string, ExactJson>>

const FULL_OBJECTS = 'ask LiteLLM for GET /key/list?return_full_object=true'

/** @throws UnreadableFile */
export function readKeys(text: string): KeyFile {
  const items = itemsOf(text)
  const failed = items.findIndex((item) => isObject(item) && 'error' in item && !('token' in item))
  if (failed >= 0)
    throw new UnreadableFile(
      `answer ${failed + 1} of the file is an error of LiteLLM instead of keys; ask for it again with the key of a proxy admin`,
    )
  const rows = items.flatMap(rowsOf)
  if (rows.length === 0) throw new UnreadableFile(`the file holds no keys; ${FULL_OBJECTS}`)
  return { keys: rows.map((row, index) => readKey(row, `entry ${index + 1}`)), notes: pageNotes(items) }
}

/** The rows of a list of LiteLLM in JSON: the answer of a route, pages of answers, or rows of a table. @param remedy for a file without any @throws UnreadableFile */
export function readRows(text: string, name: string, remedy: string): readonly ExactJson[] {
  const json = text.trim() === '' ? [] : parsedJson(text)
  const items = Array.isArray(json) ? (json as readonly ExactJson[]) : [json]
  const rows = items.flatMap((item) => (isObject(item) && Array.isArray(item[name]) ? (item[name] as readonly ExactJson[]) : [item]))
  if (rows.length === 0 || rows.some((row) => isObject(row) && 'error' in row))
    throw new UnreadableFile(`the file holds no ${name}; ${remedy}`)
  return rows
}

function itemsOf(text: string): readonly ExactJson[] {
  const start = text.trimStart().charAt(0)
  if (start === '') throw new UnreadableFile(`the file is empty; ${FULL_OBJECTS}`)
  if (start !== '{' && start !== '[') return csvItems(text)
  const json = parsedJson(text)
  return Array.isArray(json) ? (json as readonly ExactJson[]) : [json]
}

function parsedJson(text: string): ExactJson {
  try {
    return parseExactJson(text)
  } catch (error) {
    // Keeps only the position, because parsers quote their input, which may be a key.
    const [, place = 'unexpected text'] = /^SyntaxError: (?!Unexpected token ).*(position \d+|end of JSON input)/.exec(String(error)) ?? []
    throw new UnreadableFile(`the file is not JSON (${place}); save the answer of LiteLLM whole`)
  }
}

function csvItems(text: string): readonly ExactJson[] {
  const rows = csvObjects(text)
  if (!rows?.every((row) => 'token' in row && 'models' in row))
    throw new UnreadableFile(
      'the file is neither JSON nor a CSV with the columns of LiteLLM_VerificationToken, token and models among them',
    )
  return rows
}

/** An answer with a list, an answer about one key, or a row. */
function rowsOf(item: ExactJson): readonly ExactJson[] {
  if (!isObject(item)) return [item]
  if (Array.isArray(item['keys'])) return item['keys'] as readonly ExactJson[]
  return isObject(item['info']) ? [{ ...item['info'], token: item['key'] ?? item['info']['token'] ?? null }] : [item]
}

function readKey(row: ExactJson, place: string): ReadKey {
  if (typeof row === 'string')
    return { ok: false, place, alias: undefined, reason: 'has only a hash, without models and limits', remedy: FULL_OBJECTS }
  const parsed = litellmKey.safeParse(row)
  if (parsed.success) return { ok: true, place, key: parsed.data }
  const alias = isObject(row) && typeof row['key_alias'] === 'string' ? row['key_alias'] : undefined
  return { ok: false, place, alias, reason: fieldsIn(parsed.error), remedy: 'correct the file, or create the ApiKey by hand' }
}

/** Names of fields only: a value may be a credential. */
function fieldsIn({ issues }: z.ZodError): string {
  const names = new Set(issues.map(({ path }) => path.join('.') || 'the entry'))
  return `${[...names].slice(0, 8).join(', ')}: not of the form that LiteLLM writes`
}

/** LiteLLM returns 10 keys per page by default, and at most 100. */
function pageNotes(items: readonly ExactJson[]): readonly string[] {
  const pages = items.filter(isObject).filter((item) => typeof item['total_pages'] === 'string')
  const total = Math.max(0, ...pages.map((page) => Number(page['total_pages'])))
  const have = new Set(pages.map((page) => page['current_page'])).size
  if (total <= have) return []
  return [
    `The file has ${have} of ${total} pages of keys. Ask for the others too (GET /key/list?return_full_object=true&size=100&page=N), and import each.`,
  ]
}

function isObject(value: ExactJson | undefined): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Reads CSV as PostgreSQL writes it (RFC 4180): quotes around a field, doubled within it.
 * @returns one object per row, by the names of the first row; `undefined` for text whose quotes do not match
 */
function csvObjects(text: string): readonly Readonly<Record<string, string>>[] | undefined {
  try {
    const [names = [], ...rows] = parse(text, { bom: true, recordDelimiter: ['\r\n', '\n', '\r'], relaxColumnCount: true })
    return rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? ''])))
  } catch {
    return undefined
  }
}
