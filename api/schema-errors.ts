/** Translates zod issues into manifest errors with a field, the value, a reason and a remedy. No message shows a regular expression. */
import { z } from 'zod'
import { TIME_ZONE_NAME } from '#contract/values/budget-window.ts'
import { AUTH_SCHEME, HEADER_NAME, HEADER_VALUE } from '#contract/values/forward-headers.ts'
import { DNS_LABEL, MODEL_NAME, MODEL_PATTERN, REQUEST_FIELD } from '#contract/values/name-patterns.ts'
import { EMAIL } from './account.ts'
import { HINT, SHA256_HEX } from './apikey.ts'
import { UID } from './credit.ts'
import { DECIMAL_AMOUNT } from './decimal-amount.ts'
import { type ManifestError, nearest, shownText, shownValue, typeOf } from './manifest-error.ts'
import { DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE } from './metadata.ts'

type Issue = z.core.$ZodIssue
type Schema = z.core.$ZodType

/** What an error message depends on besides the issue. */
export interface ErrorContext {
  /** The schema that refused the document; messages list its fields. */
  readonly schema: z.core.$ZodType
  /** The document as it was written, with its null fields. */
  readonly document: unknown
  /** Whether the document holds credentials: then no message shows a value. */
  readonly isSecret?: boolean
}

/** Why a text is wrong, and how to correct it. `reason` continues the value: `"a b" is …`. */
type TextForm = Omit<ManifestError, 'field'>

/** Maximum number of field names in a message. */
const MAX_FIELDS = 12
/** Remedies for fields that are missing or empty. */
const EMPTY_REMEDIES: Readonly<Record<string, string>> = {
  models: 'name at least one model; ["*"] allows all models',
  backends: 'add a backend with a name and a service or a url',
}

/**
 * Returns one error per problem.
 * @param issues of a parse with `reportInput`, which distinguishes a missing field from a field of the wrong type
 */
export function schemaErrors(issues: readonly Issue[], context: ErrorContext): ManifestError[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownField([...issue.path, key], context))
    return [{ field: fieldPath(issue.path), ...explain(issue, context) }]
  })
}

/** `['spec', 'backends', 0, 'url']` becomes `spec.backends[0].url`. A name that looks like a credential becomes `…`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    const name = shownText(String(step)) === undefined ? '…' : String(step)
    return text === '' ? name : `${text}.${name}`
  }, '')
}

/** Names under which users write the credential of a model server into the manifest. */
const CREDENTIAL_FIELD = /^(api_?key|(access_?|auth_?|bearer_?)?token|password|secret|credentials?|auth(orization)?)$/i
const CREDENTIAL_REMEDY =
  'put the credential into a Secret and name that Secret in authSecretRef; if this file held a real credential, replace the credential at its server'

function unknownField(path: readonly PropertyKey[], { schema }: ErrorContext): ManifestError {
  const name = String(path.at(-1))
  const known = fieldsAt(schema, path.slice(0, -1)).filter((field) => field !== 'status')
  return { field: fieldPath(path), reason: 'there is no such field', remedy: unknownFieldRemedy(name, pathsOfField(schema, name), known) }
}

function unknownFieldRemedy(name: string, elsewhere: readonly string[], known: readonly string[]): string {
  const near = nearest(name, known)
  if (known.includes('authSecretRef') && CREDENTIAL_FIELD.test(name)) return CREDENTIAL_REMEDY
  if (near !== undefined) return `did you mean ${near}?`
  if (elsewhere.length === 1) return `did you mean ${elsewhere.join('')}?`
  return known.length === 0 || known.length > MAX_FIELDS ? 'remove it' : `remove it; the fields here are ${known.join(', ')}`
}

function explain(issue: Issue, context: ErrorContext): TextForm {
  const { path } = issue
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined || issue.input === null ? missing(path, context) : wrongType(issue, context)
    case 'invalid_value':
      return issue.input === undefined ? missing(path, context) : unknownValue(issue, context)
    case 'too_small':
    case 'too_big':
      return wrongSize(issue, context)
    case 'invalid_format':
      return wrongFormat(issue, context)
    default:
      return { reason: issue.message, remedy: issue.message.startsWith('repeats') ? 'remove one of the two' : 'shorten or correct it' }
  }
}

function missing(path: readonly PropertyKey[], { document }: ErrorContext): TextForm {
  const isThere = valueAt(document, path) === null
  const remedy = EMPTY_REMEDIES[String(path.at(-1))]
  return isThere
    ? { reason: 'has no value', remedy: remedy ?? 'write a value, or remove the field' }
    : { reason: 'is missing', remedy: remedy ?? 'add it' }
}

/** The value of an object is not shown: users sometimes write a token instead of an object. */
function wrongType(issue: z.core.$ZodIssueInvalidType, context: ErrorContext): TextForm {
  const { expected, input: value, path } = issue
  const shown = shownIn(issue, context)
  const is = `${subject(issue, context)}is ${typeOf(value)}`
  switch (expected) {
    case 'array':
      return {
        reason: `${is}, not a list`,
        remedy: `write a list: ${shown === undefined ? 'one entry per line, each after "- "' : `[${shown}]`}`,
      }
    case 'object':
    case 'record':
      return { reason: `is ${typeOf(value)}, not an object`, remedy: objectRemedy(path, value, context.schema) }
    case 'string':
      return { reason: `${is}, not text`, remedy: textRemedy(value, shown) }
    case 'int':
    case 'number':
      if (typeof value === 'number')
        return { reason: `${subject(issue, context)}is not a whole number`, remedy: 'write a number without a fraction' }
      return { reason: `${is}, not a number`, remedy: numberRemedy(value, String(path.at(-1))) }
    default:
      return { reason: `is ${typeOf(value)}, not ${expected}`, remedy: 'change the value' }
  }
}

function objectRemedy(path: readonly PropertyKey[], value: unknown, schema: Schema): string {
  const fields = fieldsAt(schema, path)
  const owner = fields.find((field) => knownValues(schema, [...path, field]).includes(String(value)))
  if (owner !== undefined) return `write { ${owner}: ${String(value)} }`
  return fields.length === 0 ? 'write its entries as "key: value" below it' : `write an object with the fields ${fields.join(', ')}`
}

function textRemedy(value: unknown, shown: string | undefined): string {
  if (typeof value !== 'number' && typeof value !== 'boolean') return 'write a text'
  return `write it in quotes${shown === undefined ? '' : `: "${shown}"`}`
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

function numberRemedy(value: unknown, field: string): string {
  const text = typeof value === 'string' ? value.trim() : ''
  if (/^-?\d{1,15}$/.test(text)) return `remove the quotes: ${Number(text)}`
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const factor = SECONDS[unit]
  const isDuration = count !== undefined && factor !== undefined && field.endsWith('Seconds')
  return isDuration ? `write the seconds: ${Number(count) * factor}` : 'write a whole number'
}

function unknownValue(issue: z.core.$ZodIssueInvalidValue, context: ErrorContext): TextForm {
  const values = issue.values.map(String)
  const near = typeof issue.input === 'string' ? nearest(issue.input, values) : undefined
  const [only = ''] = values
  const known = values.length === 1 ? `use ${only}` : `use ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`
  return {
    reason: `${subject(issue, context)}is not a known value`,
    remedy: near === undefined || values.length === 1 ? known : `did you mean ${near}? Otherwise ${known}`,
  }
}

function wrongSize(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig, context: ErrorContext): TextForm {
  const { input, origin } = issue
  const bound = issue.code === 'too_small' ? `at least ${issue.minimum}` : `at most ${issue.maximum}`
  const isSized = typeof input === 'string' || Array.isArray(input)
  if (!isSized)
    return { reason: `${subject(issue, context)}is too ${issue.code === 'too_small' ? 'small' : 'large'}`, remedy: `use ${bound}` }
  const unit = origin === 'string' ? 'characters' : 'entries'
  if (input.length > 0) return { reason: `has ${input.length} ${unit}`, remedy: `use ${bound}` }
  const remedy = EMPTY_REMEDIES[String(issue.path.at(-1))] ?? (origin === 'string' ? 'write a value' : `write ${bound} of them`)
  return { reason: origin === 'string' ? 'is an empty text' : 'is an empty list', remedy }
}

function wrongFormat(issue: z.core.$ZodIssueInvalidStringFormat, context: ErrorContext): TextForm {
  const value = typeof issue.input === 'string' ? issue.input : ''
  if (issue.format === 'base64')
    return { reason: 'is not base64', remedy: 'encode it with base64, or write the plain text below stringData' }
  const form = issue.format === 'datetime' ? timeForm(value) : patternForm(issue.pattern ?? '', value)
  const { reason, remedy } = form ?? { reason: 'has a form that is not allowed', remedy: 'see the field in docs/reference.md' }
  const isShown = subject(issue, context) !== ''
  return { reason: `${subject(issue, context)}${reason}`, remedy: isShown ? remedy : remedy.replace(/, for example ".*"$/, '') }
}

/** The value before a reason; '' if the value must not be shown. */
function subject(issue: Issue, context: ErrorContext): string {
  const shown = shownIn(issue, context)
  return shown === undefined ? '' : `${shown} `
}

function shownIn({ input, path }: Issue, { isSecret }: ErrorContext): string | undefined {
  return isSecret ? undefined : shownValue(input, path)
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, step) => (typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, step)?.value : undefined),
    document,
  )
}

/** @returns names of the fields of the object at this path; [] if the path has no object with fixed fields */
function fieldsAt(root: Schema, path: readonly PropertyKey[]): readonly string[] {
  const place = path.reduce<Schema | undefined>((schema, step) => schema && below(schema, step), root)
  return place === undefined ? [] : Object.keys(shapeOf(place))
}

/** @returns paths of all fields with this name, such as `spec.limits.requestsPerMinute`; entries of lists are not searched */
function pathsOfField(root: Schema, name: string): readonly string[] {
  return Object.entries(shapeOf(root)).flatMap(([field, schema]) => [
    ...(field === name ? [field] : []),
    ...pathsOfField(schema, name).map((path) => `${field}.${path}`),
  ])
}

/** @returns the values of the field if it is one of several words; else [] */
function knownValues(root: Schema, path: readonly PropertyKey[]): readonly string[] {
  const place = path.reduce<Schema | undefined>((schema, step) => schema && below(schema, step), root)
  const plain = place && unwrapped(place)
  return plain instanceof z.ZodEnum ? plain.options.map(String) : []
}

function below(schema: Schema, step: PropertyKey): Schema | undefined {
  const plain = unwrapped(schema)
  if (plain instanceof z.ZodArray) return plain.element
  if (plain instanceof z.ZodRecord) return plain.valueType
  return shapeOf(plain)[String(step)]
}

function shapeOf(schema: Schema): Readonly<Record<string, Schema>> {
  const plain = unwrapped(schema)
  return plain instanceof z.ZodObject ? plain.shape : {}
}

/** The schema without its wrappers: optional, a default, a transformation of the result. */
function unwrapped(schema: Schema): Schema {
  if (schema instanceof z.ZodPipe) return unwrapped(schema.in)
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) return unwrapped(schema.unwrap())
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) return unwrapped(schema.unwrap())
  return schema
}

const MODEL_CHARACTERS = 'letters, digits and . _ : / @ + -, beginning with a letter or a digit'

const FORMS: Readonly<Record<string, (value: string) => TextForm>> = {
  [UID]: () => ({ reason: 'is not a uid', remedy: 'write the metadata.uid of the object' }),
  [MODEL_PATTERN]: (value) =>
    /^\*.*\*$|.\*./s.test(value)
      ? { reason: 'has * inside or at both ends', remedy: 'write * at one end only, as in "qwen-*" or "*-mini"' }
      : { reason: 'is not a model name', remedy: `use ${MODEL_CHARACTERS}, and * at one end for many models` },
  [MODEL_NAME]: () => ({ reason: 'is not a model name', remedy: `use ${MODEL_CHARACTERS}` }),
  [DNS_SUBDOMAIN]: (value) => ({
    reason: 'is not a valid name',
    remedy: `use lower-case letters, digits, "-" and ".", with a letter or a digit at both ends${example(value, /[^a-z0-9.-]+/g)}`,
  }),
  [DNS_LABEL]: (value) => ({
    reason: 'is not a valid name',
    remedy: `use lower-case letters, digits and "-", with a letter or a digit at both ends${example(value, /[^a-z0-9-]+/g)}`,
  }),
  [HEADER_NAME]: () => ({
    reason: 'is not a header name',
    remedy: 'use letters, digits, "-", "_" and ".", with a letter or a digit first',
  }),
  [REQUEST_FIELD]: () => ({ reason: 'is not the name of a field', remedy: 'use letters, digits, "_" and "-", with a letter or "_" first' }),
  [HEADER_VALUE]: () => ({ reason: 'is not the value of a header', remedy: 'use printable ASCII, without a blank at either end' }),
  [AUTH_SCHEME]: () => ({ reason: 'is not the word before a credential', remedy: 'write one word such as Bearer, or "" for none' }),
  [LABEL_KEY]: () => ({
    reason: 'is not a label key',
    remedy: 'write [prefix/]name: letters, digits, "-", "_" and ".", at most 63 after the prefix, which is a DNS name',
  }),
  [LABEL_VALUE]: () => ({
    reason: 'is not a label value',
    remedy: 'use letters, digits, "-", "_" and ".", with a letter or a digit at both ends',
  }),
  [DECIMAL_AMOUNT]: () => ({
    reason: 'is not a decimal number with at most 9 digits before the point and 6 after it',
    remedy: 'write it like "0.15", without sign, exponent or separators',
  }),
  [SHA256_HEX]: (value) =>
    value.startsWith('sk-')
      ? {
          reason: 'is the key itself',
          remedy: 'write its SHA-256, and replace the key: everybody who can read this ApiKey may have seen it',
        }
      : { reason: 'is not a SHA-256', remedy: 'write 64 lower-case hexadecimal digits, as sha256sum prints them' },
  [HINT]: () => ({ reason: 'has a control character', remedy: 'remove the character' }),
  [EMAIL]: () => ({ reason: 'is not a mail address', remedy: 'write it like name@example.com' }),
  [TIME_ZONE_NAME]: () => ({ reason: 'is not the name of a time zone', remedy: 'write an IANA name such as Europe/Berlin or UTC' }),
}
const BY_PATTERN = new Map(Object.entries(FORMS).map(([pattern, words]) => [String(new RegExp(pattern)), words]))

/** @returns reason and remedy for a text that does not match; undefined for an unknown pattern. @param pattern as zod reports it */
export function patternForm(pattern: string, value: string): TextForm | undefined {
  return BY_PATTERN.get(pattern)?.(value)
}

/** @returns reason and remedy for a text that is not an RFC 3339 time */
function timeForm(value: string): TextForm {
  const [, date] = /^(\d{4}-\d{2}-\d{2})$/.exec(value) ?? []
  if (date !== undefined) return { reason: 'is a date without a time', remedy: `write a time, such as "${date}T00:00:00Z"` }
  const [, time] = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?)$/.exec(value) ?? []
  if (time !== undefined) return { reason: 'is a time without a time zone', remedy: `append Z for UTC or an offset, as in "${time}Z"` }
  const isWhole = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/.test(value)
  if (isWhole) return { reason: 'is a time that does not exist', remedy: 'correct the day, the hour or the offset' }
  return { reason: 'is not a time', remedy: 'write it like "2027-01-01T00:00:00Z"' }
}

/** A valid name that is similar to the invalid one, as an example; '' if there is none. */
function example(value: string, refused: RegExp): string {
  const name = value
    .toLowerCase()
    .replaceAll(refused, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .replaceAll(/-?\.-?/g, '.')
  return name === '' || name === value || name.length > 63 ? '' : `, for example "${name}"`
}
