/** Where a field of a JSON text stands, if every parser must find the same one. */
import { isUtf8 } from 'node:buffer'
import type { JsonBody } from './json-body.ts'

/** Beginnings of the escapes of ASCII letters; no serialiser writes them, so a key spelled with them means to deceive. */
const LETTER_ESCAPES = ['\\u004', '\\u005', '\\u006', '\\u007']
/** What they have in common: most bodies lack it, and one search is enough for them. */
const LOW_ESCAPE = '\\u00'

const COLON = 58
const QUOTE = 34
const BACKSLASH = 92
/** What brackets and braces do to the depth. */
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

/** A part of a text that is replaced. */
export interface ByteEdit extends ByteSpan {
  readonly text: string
}

/**
 * Where the literal of a field stands, quotes included, if every parser must find the same one: a single raw `"field"`, whose literal is
 * `value` in its plainest spelling, and no escape that could spell the key otherwise.
 */
export function provenLiteral(body: JsonBody, field: string, value: string): ByteSpan | undefined {
  const { text } = body
  const start = provenStart(text, field)
  if (start === undefined) return undefined
  const end = endOfString(text, start)
  return end === undefined || text.slice(start, end) !== JSON.stringify(value) ? undefined : byteSpan(body, start, end)
}

/**
 * Where the object or the null of a top-level field stands, if every parser must find the same one, as `provenLiteral` does for a string.
 * @param body its value has this field
 */
export function provenObject(body: JsonBody, field: string): ByteSpan | undefined {
  const { text } = body
  const start = provenStart(text, field)
  if (start === undefined) return undefined
  const end = text.startsWith('null', start) ? start + 'null'.length : endOfObject(text, start)
  return end === undefined ? undefined : byteSpan(body, start, end)
}

/** Where the value of a field begins, if its name stands in the text once, and no escape could spell it otherwise. */
function provenStart(text: string, field: string): number | undefined {
  const token = `"${field}"`
  const key = text.indexOf(token)
  if (key < 0 || text.indexOf(token, key + token.length) >= 0) return undefined
  if (hasEscapedLetters(text)) return undefined
  return startOfValue(text, key + token.length)
}

/** @param end of a key @returns index of the first character of its value; undefined where no colon follows */
export function startOfValue(text: string, end: number): number | undefined {
  const colon = skipSpace(text, end)
  return text.charCodeAt(colon) === COLON ? skipSpace(text, colon + 1) : undefined
}

/** @returns undefined for bytes that are no UTF-8: no place in them can be counted */
function byteSpan(body: JsonBody, start: number, end: number): ByteSpan | undefined {
  if (body.bytes.length !== body.text.length && !isUtf8(body.bytes)) return undefined
  return { start: byteOffset(body, start), end: byteOffset(body, end) }
}

/**
 * Where the string of a field at the top level of a JSON object stands, quotes included.
 * @param bytes the beginning of the object
 * @returns undefined when it does not stand in them whole, or is no string
 */
export function literalAtTop(bytes: Buffer, field: string): ByteSpan | undefined {
  const text = bytes.toString('latin1') // one unit per byte; names of fields are looked for in ASCII
  const token = `"${field}"`
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    depth += DEPTH_CHANGE.get(text.charCodeAt(at)) ?? 0
    if (text.charCodeAt(at) !== QUOTE) continue
    const end = endOfString(text, at)
    if (end === undefined) return undefined
    const colon = skipSpace(text, end)
    if (depth === 1 && text.charCodeAt(colon) === COLON && text.slice(at, end) === token) return stringAt(text, skipSpace(text, colon + 1))
    at = end - 1
  }
  return undefined
}

function stringAt(text: string, start: number): ByteSpan | undefined {
  const end = endOfString(text, start)
  return end === undefined ? undefined : { start, end }
}

/** Whether a field's name stands in the text at most once, so that no two parsers can read different ones. */
export function isAtMostOnce(text: string, field: string): boolean {
  const token = `"${field}"`
  const first = text.indexOf(token)
  return first < 0 || text.indexOf(token, first + token.length) < 0
}

/**
 * Replaces parts of a text: one allocation, and each byte is copied once, since this is done for every request.
 * @param edits from left to right; they do not overlap
 */
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

/** A text as long as its bytes has one unit per byte. */
function byteOffset({ bytes, text }: JsonBody, at: number): number {
  return bytes.length === text.length ? at : Buffer.byteLength(text.slice(0, at))
}

function skipSpace(text: string, from: number): number {
  let at = from
  for (let code = text.charCodeAt(at); code === 32 || code === 9 || code === 10 || code === 13; code = text.charCodeAt(at)) at++
  return at
}

/** @returns index after the closing brace of the object that begins at `start` */
export function endOfObject(text: string, start: number): number | undefined {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    depth += DEPTH_CHANGE.get(code) ?? 0
    if (depth === 0) return at === start ? undefined : at + 1
    if (code === QUOTE) at = (endOfString(text, at) ?? text.length) - 1
  }
  return undefined
}

/** How many objects and arrays more than it closes a part of a JSON text opens. @param from outside of any string */
export function changeOfDepth(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    depth += DEPTH_CHANGE.get(code) ?? 0
    if (code === QUOTE) at = (endOfString(text, at) ?? text.length) - 1
  }
  return depth
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
