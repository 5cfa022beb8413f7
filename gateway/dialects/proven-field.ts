/** Finds a field of a JSON text, provided that every parser must find the same one. */
import { isUtf8 } from 'node:buffer'
import type { JsonBody } from './json-body.ts'

/** First characters of the escapes of ASCII letters. No serialiser writes such escapes, so a key that contains them is meant to deceive. */
const LETTER_ESCAPES = ['\\u004', '\\u005', '\\u006', '\\u007']
/** Their common part. Most bodies lack it, so one search is enough for them. */
const LOW_ESCAPE = '\\u00'

const COLON = 58
const QUOTE = 34
const BACKSLASH = 92
const DEPTH_CHANGE: ReadonlyMap<number, 1 | -1> = new Map([
  [91, 1],
  [93, -1],
  [123, 1],
  [125, -1],
])

/** A part of a text, in bytes. */
export interface ByteSpan {
  readonly start: number
  readonly end: number
}

export interface ByteEdit extends ByteSpan {
  readonly text: string
}

/**
 * Finds the literal of a field, quotes included, if every parser must find the same one: the text has a single raw `"field"`, its literal
 * is `value` in the plainest spelling, and no escape could spell the key in another way.
 */
export function provenLiteral(body: JsonBody, field: string, value: string): ByteSpan | undefined {
  const literal = JSON.stringify(value)
  return provenValue(body, field, (text, start) => (text.startsWith(literal, start) ? start + literal.length : undefined))
}

/** Finds the object or null of a top-level field under the same conditions as `provenLiteral`. @param body its value has this field */
export function provenObject(body: JsonBody, field: string): ByteSpan | undefined {
  return provenValue(body, field, (text, start) => (text.startsWith('null', start) ? start + 'null'.length : endOfObject(text, start)))
}

/** @returns undefined also for bytes that are not UTF-8, whose positions cannot be counted */
function provenValue(body: JsonBody, field: string, endOf: (text: string, start: number) => number | undefined): ByteSpan | undefined {
  const { bytes, text } = body
  const token = `"${field}"`
  const key = text.indexOf(token)
  if (key < 0 || text.indexOf(token, key + token.length) >= 0 || hasEscapedLetters(text)) return undefined
  const start = startOfValue(text, key + token.length)
  const end = start === undefined ? undefined : endOf(text, start)
  if (start === undefined || end === undefined || (bytes.length !== text.length && !isUtf8(bytes))) return undefined
  return { start: byteOffset(body, start), end: byteOffset(body, end) }
}

/** @param end end of a key @returns index of the first character of its value; undefined if no colon follows */
function startOfValue(text: string, end: number): number | undefined {
  const colon = skipSpace(text, end)
  return text.charCodeAt(colon) === COLON ? skipSpace(text, colon + 1) : undefined
}

/** A string at the top level of the object that begins here, quotes included. @returns undefined if the bytes lack a part of it */
export function literalAtTop(bytes: Buffer, field: string): ByteSpan | undefined {
  const text = bytes.toString('latin1') // one unit per byte; the names of the fields are ASCII
  const token = `"${field}"`
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    depth += DEPTH_CHANGE.get(text.charCodeAt(at)) ?? 0
    if (text.charCodeAt(at) !== QUOTE) continue
    const end = endOfString(text, at)
    if (end === undefined) return undefined
    const start = depth === 1 && text.slice(at, end) === token ? startOfValue(text, end) : undefined
    if (start !== undefined) {
      const valueEnd = endOfString(text, start)
      return valueEnd === undefined ? undefined : { start, end: valueEnd }
    }
    at = end - 1
  }
  return undefined
}

/** Whether the text contains a field's name at most once, so that no two parsers can read different values. */
export function isAtMostOnce(text: string, field: string): boolean {
  const token = `"${field}"`
  const first = text.indexOf(token)
  return first < 0 || text.indexOf(token, first + token.length) < 0
}

/** One allocation and one copy of each byte, because this is done for every request. @param edits from left to right, not overlapping */
export function edited(bytes: Buffer, edits: readonly ByteEdit[]): Buffer {
  const growth = edits.reduce((sum, { start, end, text }) => sum + Buffer.byteLength(text) - (end - start), 0)
  const result = Buffer.allocUnsafe(bytes.length + growth)
  let [from, to] = [0, 0]
  for (const { start, end, text } of edits) {
    to += bytes.copy(result, to, from, start)
    to += result.write(text, to)
    from = end
  }
  bytes.copy(result, to, from)
  return result
}

function hasEscapedLetters(text: string): boolean {
  return text.includes(LOW_ESCAPE) && LETTER_ESCAPES.some((escape) => text.includes(escape))
}

/** Converts an index of the text into an index of its bytes. They are equal if the text has as many units as bytes. */
function byteOffset({ bytes, text }: JsonBody, at: number): number {
  return bytes.length === text.length ? at : Buffer.byteLength(text.slice(0, at))
}

function skipSpace(text: string, from: number): number {
  let at = from
  for (let code = text.charCodeAt(at); code === 32 || code === 9 || code === 10 || code === 13; code = text.charCodeAt(at)) at++
  return at
}

/** @returns index after the closing brace of the object that begins at `start` */
function endOfObject(text: string, start: number): number | undefined {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    depth += DEPTH_CHANGE.get(code) ?? 0
    if (depth === 0) return at === start ? undefined : at + 1
    if (code === QUOTE) at = (endOfString(text, at) ?? text.length) - 1
  }
  return undefined
}

/** @returns index after the closing quote */
function endOfString(text: string, start: number): number | undefined {
  if (text.charCodeAt(start) !== QUOTE) return undefined
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) return at + 1
  }
  return undefined
}
