/** Reads from a request body the fields on which the gateway decides, and prepares the bytes to send. Pure, so any thread may do it. */
import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../errors.ts'
import type { Dialect, ModelRequest } from './dialect.ts'
import { readForm } from './form-body.ts'
import { asObject, type JsonBody } from './json-body.ts'
import { jsonError } from './json-error.ts'
import type { PromptSize } from './prompt-size.ts'
import { requestBody, type RequestBody } from './request-body.ts'
import { COSTS, invalid, nestedField, requestFields } from './request-shape.ts'

export interface ReadRequest {
  readonly asked: ModelRequest
  /** Names of its top-level fields. */
  readonly fields: readonly string[]
  readonly body: RequestBody
  /** undefined for a call without limits. */
  readonly size: PromptSize | undefined
}

export interface HowToRead {
  /**
   * Whether limits need the cost of the call: the size of its prompt, and the position at which its usage can be requested. Calls of keys without
   * limits skip both.
   */
  readonly isMetered?: boolean
  /** Of a form. */
  readonly boundary?: string | undefined
}

/**
 * Reads a request body. Text and parsed value end with this function; only the bytes live as long as the call.
 * @param how what the call needs
 * @returns the request, or the refusal (rows 10, 11, 42)
 */
export function readRequest(bytes: Buffer, dialect: Dialect, how: HowToRead = {}): ReadRequest | GatewayError {
  return dialect.isForm ? readFormRequest(bytes, dialect, how) : readJsonRequest(bytes, dialect, how)
}

function readJsonRequest(bytes: Buffer, dialect: Dialect, { isMetered = false }: HowToRead): ReadRequest | GatewayError {
  const json = parseBody(bytes)
  if (json instanceof GatewayError) return json
  const fields = Object.keys(json.value)
  if (fields.length > MAX_FIELDS) return notJson('too many fields at its top level')
  const asked = requestFields(json.value, dialect)
  if (asked instanceof GatewayError) return asked
  const asksUsage = isMetered && dialect.hasUsageOption && asked.stream && !asked.wantsUsage
  const size = isMetered ? dialect.promptSize(json.value, bytes.length) : undefined
  return { asked, fields, body: requestBody(json, asked.model, asksUsage), size }
}

/** Fields of a form become the value that JSON would have. A file is an empty object. */
function readFormRequest(bytes: Buffer, dialect: Dialect, { isMetered = false, boundary = '' }: HowToRead): ReadRequest | GatewayError {
  const form = readForm(bytes, boundary)
  if ('problem' in form) return new GatewayError('invalidForm', { reason: form.problem })
  const { fields, contentType } = form
  const twice = fields.find(({ name }, at) => !name.endsWith('[]') && fields.some((other, index) => index > at && other.name === name))
  if (twice) return invalid(twice.name, 'appears in the form more than once')
  const nested = fields.map(({ name }) => nestedField(name)).find((refusal) => refusal !== undefined)
  if (nested) return nested
  const asked = requestFields(Object.fromEntries(fields.map(({ name, text }) => [name, formValue(name, text)])), dialect)
  if (asked instanceof GatewayError) return asked
  const modelAt = fields.find(({ name }) => name === 'model')?.at ?? { start: 0, end: 0 } // the fields have a model, or they were refused
  const size = isMetered ? dialect.promptSize({}, bytes.length) : undefined
  return { asked, fields: fields.map(({ name }) => name), body: { bytes, model: asked.model, modelAt, contentType }, size }
}

const FORM_BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false, True: true, False: false, '1': true, '0': false }

function formValue(name: string, text: string | undefined): unknown {
  if (text === undefined) return {}
  if (name === 'stream') return FORM_BOOLEANS[text] ?? text
  return COSTS.includes(name) && /^-?\d{1,15}$/.test(text) ? Number(text) : text
}

const BYTE_ORDER_MARK = '\uFEFF'

/** Parses a request body as a JSON object. @returns row 10 for any other text, and for a body that would take too long to parse */
function parseBody(bytes: Buffer): JsonBody | GatewayError {
  if (bytes.length === 0) return notJson('the body is empty')
  if (!isUtf8(bytes)) return notJson('not UTF-8') // two parsers may decode other bytes into different texts
  if (hasTooManyParts(bytes)) return notJson('too many objects, arrays and fields')
  const text = bytes.toString('utf8')
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return notJson(whyNotJson(text))
  }
  const value = asObject(parsed)
  return value ? { bytes, text, value } : notJson('not an object')
}

/** Explains why a text is not JSON, without V8's message, which quotes the body. */
function whyNotJson(text: string): string {
  if (text.startsWith(BYTE_ORDER_MARK)) return 'it begins with a byte order mark; send UTF-8 without one'
  const error = jsonError(text)
  return error === undefined ? 'not valid JSON' : `not valid JSON at ${error}`
}

function notJson(reason: string): GatewayError {
  return new GatewayError('invalidJson', { reason })
}

/** Above the parts of any real request: thousands of messages with tools have about ten thousand. */
const MAX_PARTS = 200_000
/** Maximum number of top-level fields. Real requests have some dozens. Their names go from the worker to the thread that answers all callers. */
const MAX_FIELDS = 1_000

const QUOTE = 0x22
const COMMA = 0x2c
const OPENING_BRACKET = 0x5b
const BACKSLASH = 0x5c
const OPENING_BRACE = 0x7b

/**
 * Whether a text has more than 200,000 objects, arrays and separators together, outside of strings. It need not be valid JSON. The loop
 * reads each byte once, about 1 ms per MiB; a search from quote to quote takes ten times as long for a text of quotes.
 */
export function hasTooManyParts(bytes: Buffer): boolean {
  return bytes.length > MAX_PARTS && partsIn(bytes, MAX_PARTS) > MAX_PARTS
}

/** The same of several texts together. */
export function haveTooManyParts(texts: readonly string[]): boolean {
  let left = MAX_PARTS
  for (const text of texts) {
    left -= partsIn(Buffer.from(text), left)
    if (left < 0) return true
  }
  return false
}

/** Counts to one more than `most`. */
function partsIn(bytes: Buffer, most: number): number {
  let parts = 0
  let isInString = false
  for (let at = 0; at < bytes.length && parts <= most; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) isInString = !isInString
    else if (isInString) at += byte === BACKSLASH ? 1 : 0
    else if (byte === COMMA || byte === OPENING_BRACE || byte === OPENING_BRACKET) parts++
  }
  return parts
}
