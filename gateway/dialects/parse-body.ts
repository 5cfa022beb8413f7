import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../errors.ts'
import { asObject, type JsonBody } from './json-body.ts'
import { hasTooManyParts } from './json-structure.ts'

/** Reads a request body as a JSON object. @returns row 10 for anything else, and for one whose parse would cost too much */
export function parseBody(bytes: Buffer): JsonBody | GatewayError {
  if (!isUtf8(bytes)) return notJson('not UTF-8') // else two parsers may read two different texts
  if (hasTooManyParts(bytes)) return notJson('too many objects, arrays and fields')
  const text = bytes.toString('utf8')
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return notJson('not valid JSON') // the parser's own words quote the body
  }
  const value = asObject(parsed)
  return value ? { bytes, text, value } : notJson('not an object')
}

function notJson(reason: string): GatewayError {
  return new GatewayError('invalidJson', { reason })
}
