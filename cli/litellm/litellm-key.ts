/**
 * One virtual key as LiteLLM stores and lists it: `LiteLLM_VerificationToken` in its `schema.prisma` and `litellm/models/verification_token.py`.
 * Parsed once, here; the rest of the import gets typed values. The report lists fields that LiteLLM adds later.
 */
import { z } from 'zod'
import { type ExactJson, parseExactJson } from './exact-json.ts'

/** Numbers are text here, see `exact-json.ts`. PostgreSQL writes absent values of a CSV as empty text. */
const optionalText = z
  .string()
  .nullish()
  .transform((text) => (text === null || text === '' ? undefined : text))

/** true and false; `t` and `f` in a CSV of PostgreSQL. */
const flag = z
  .union([z.boolean(), z.enum(['t', 'f', 'true', 'false', ''])])
  .nullish()
  .transform((value) => value === true || value === 't' || value === 'true')

/** A list; `{a,"b c"}` in a CSV of PostgreSQL. */
const textList = z.preprocess(
  (value) => (typeof value === 'string' ? arrayLiteral(value) : value),
  z
    .array(z.string())
    .nullish()
    .transform((list) => list ?? []),
)

const exact: z.ZodType<ExactJson> = z.unknown().transform((value) => value as ExactJson)

/** A JSON object; its text in a CSV. */
const object = z.preprocess(
  (value) => (typeof value === 'string' ? parsedObject(value) : value),
  z
    .record(z.string(), exact)
    .nullish()
    .transform((value) => value ?? {}),
)

const fields = {
  token: z.string({ error: 'is missing' }),
  key_name: optionalText,
  key_alias: optionalText,
  models: textList,
  max_budget: optionalText,
  budget_duration: optionalText,
  spend: optionalText,
  tpm_limit: optionalText,
  rpm_limit: optionalText,
  max_parallel_requests: optionalText,
  expires: optionalText,
  blocked: flag,
  team_id: optionalText,
  user_id: optionalText,
  metadata: object,
}

/** One key. Fields without a counterpart are kept unchanged, for the report. */
export const litellmKey = z.looseObject(fields)
export type LiteLLMKey = z.infer<typeof litellmKey>

/** Fields that the import reads. */
export const READ_FIELDS: ReadonlySet<string> = new Set(Object.keys(fields))

/** Parses the text of a PostgreSQL array or of a JSON array. @returns the text itself if it is neither */
function arrayLiteral(text: string): unknown {
  if (text.startsWith('[')) return parsed(text)
  if (!text.startsWith('{') || !text.endsWith('}')) return text === '' ? [] : text
  const entries = text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^",]+)/g)
  return Array.from(entries, ([, quoted, plain]) => (quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1')))
}

function parsedObject(text: string): unknown {
  return text === '' ? undefined : parsed(text)
}

function parsed(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    return text // the schema refuses it, with the name of the field
  }
}
