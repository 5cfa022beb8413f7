/**
 * The `model` rule: what was authorised is what the backend reads, whatever parser it has. Original bytes go on when no parser can read
 * another model, or another value of a field that decides what the call costs; a name is changed at offsets that the same rule proved;
 * otherwise the parsed value is written out anew.
 *
 * Precondition, held by the route (row 11): no top-level key equals one of these fields but for case.
 */
import { isUtf8 } from 'node:buffer'
import { asObject, readJson, type JsonBody } from '../dialects/json-body.ts'

const TOKEN = '"model"'
const TOKEN_BYTES = Buffer.from(TOKEN)
/** Fields that decide what a call costs: of two of them one parser takes the first, and another one the last. */
const COSTS = ['"stream"', '"n"', '"max_tokens"', '"max_completion_tokens"']
/** Beginnings of the escapes of ASCII letters; no serialiser writes them, so a key spelled with them means to deceive. */
const LETTER_ESCAPES = ['\\u004', '\\u005', '\\u006', '\\u007']
/** What they have in common: most bodies lack it, and one search is enough for them. */
const LOW_ESCAPE = '\\u00'

const COLON = 58
const QUOTE = 34
const BACKSLASH = 92

/**
 * The bytes to send for a request body.
 * @param body as the client sent it; its `model`, a string, is the one that was authorised
 * @param upstreamModel the name that the backend knows the model by
 * @returns the client's own bytes when nothing has to change
 */
export function upstreamBody(body: JsonBody, upstreamModel: string): Buffer {
  const { bytes, value } = body
  const at =
    typeof value.model === 'string' && COSTS.every((field) => isAtMostOnce(body.text, field)) ? provenLiteral(body, value.model) : undefined
  if (at === undefined) return Buffer.from(JSON.stringify({ ...value, model: upstreamModel }))
  return value.model === upstreamModel ? bytes : replaceLiteral(body, at, upstreamModel)
}

/**
 * An answer, or the data of one streamed event, with `model` set to the name that the client asked for: at its top level, or in the
 * `message` of Anthropic's `message_start`.
 * @returns `json` itself when there is no such field, when it says so already, or when this is no JSON object
 * @throws UnwritableAnswer
 */
export function renamedAnswer(json: Buffer, askedName: string): Buffer {
  const body = json.includes(TOKEN_BYTES) ? readJson(json) : undefined // most events of an Anthropic stream need no parse
  return body === undefined ? json : renamedBody(body, askedName)
}

/** `renamedAnswer` of what is parsed already. @throws UnwritableAnswer */
export function renamedBody(body: JsonBody, askedName: string): Buffer {
  const { bytes, value } = body
  const message = asObject(value.message)
  const shown = value.model ?? message?.model
  if (typeof shown !== 'string' || shown === askedName) return bytes
  const at = provenLiteral(body, shown)
  if (at !== undefined) return replaceLiteral(body, at, askedName)
  const renamed = typeof value.model === 'string' ? { ...value, model: askedName } : { ...value, message: { ...message, model: askedName } }
  try {
    return Buffer.from(JSON.stringify(renamed))
  } catch (cause) {
    throw new UnwritableAnswer('the answer is nested too deep to be written anew', { cause }) // the parser takes any depth, the writer recurses
  }
}

/** A backend's answer that JSON.parse reads and JSON.stringify cannot write. */
export class UnwritableAnswer extends Error {}

/** A part of a text, in UTF-16 units. */
interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Where the literal of `model` stands, quotes included, if every parser must find the same one: a single raw `"model"`, whose literal is
 * `value` in its plainest spelling, and no escape that could spell the key otherwise.
 */
function provenLiteral({ bytes, text }: JsonBody, value: string): Span | undefined {
  const key = text.indexOf(TOKEN)
  if (key < 0 || text.indexOf(TOKEN, key + TOKEN.length) >= 0) return undefined
  if (text.includes(LOW_ESCAPE) && LETTER_ESCAPES.some((escape) => text.includes(escape))) return undefined
  const colon = skipSpace(text, key + TOKEN.length)
  if (text.charCodeAt(colon) !== COLON) return undefined
  const start = skipSpace(text, colon + 1)
  const end = endOfString(text, start)
  if (end === undefined || text.slice(start, end) !== JSON.stringify(value)) return undefined
  if (bytes.length !== text.length && !isUtf8(bytes)) return undefined // of such bytes no place can be counted
  return { start, end }
}

function isAtMostOnce(text: string, token: string): boolean {
  const first = text.indexOf(token)
  return first < 0 || text.indexOf(token, first + token.length) < 0
}

/** One allocation and two copies: this is done for every request. */
function replaceLiteral(body: JsonBody, { start, end }: Span, value: string): Buffer {
  const { bytes } = body
  const literal = JSON.stringify(value)
  const [from, to] = [byteOffset(body, start), byteOffset(body, end)]
  const rest = from + Buffer.byteLength(literal)
  const replaced = Buffer.allocUnsafe(rest + bytes.length - to)
  bytes.copy(replaced, 0, 0, from)
  replaced.write(literal, from)
  bytes.copy(replaced, rest, to)
  return replaced
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
