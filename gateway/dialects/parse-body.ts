import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../errors.ts'
import { asObject, type JsonBody } from './json-body.ts'
import { jsonError } from './json-error.ts'
import { hasTooManyParts } from './json-structure.ts'

const BYTE_ORDER_MARK = '\uFEFF'

/** Parses a request body as a JSON object. @returns row 10 for any other text, and for a body that would take too long to parse */
export function parseBody(bytes: Buffer): JsonBody | GatewayError {
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
