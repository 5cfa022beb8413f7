/**
 * The `model` rule: what was authorised is what the backend reads, whatever parser it has. Original bytes go on when no parser can read
 * another model in them; a name is changed at offsets that the same rule proved; otherwise the parsed value is written out anew.
 *
 * Precondition, held by the route (row 11): no top-level key equals `model` but for case.
 */

const TOKEN = Buffer.from('"model"')
/** Beginnings of the escapes of ASCII letters; no serialiser writes them, so a key spelled with them means to deceive. */
const LETTER_ESCAPES = [Buffer.from('\\u004'), Buffer.from('\\u005'), Buffer.from('\\u006'), Buffer.from('\\u007')]
/** What they have in common: most bodies lack it, and one search is enough for them. */
const LOW_ESCAPE = Buffer.from('\\u00')

const COLON = 58
const QUOTE = 34
const BACKSLASH = 92

/** A JSON object as `JSON.parse` returns it. */
export type JsonObject = Readonly<Record<string, unknown>>

/**
 * The bytes to send for a request body.
 * @param body as the client sent it
 * @param parsed `JSON.parse` of it; its `model`, a string, is the one that was authorised
 * @param upstreamModel the name that the backend knows the model by
 * @returns `body` itself when nothing has to change
 */
export function upstreamBody(body: Buffer, parsed: JsonObject, upstreamModel: string): Buffer {
  const at = typeof parsed.model === 'string' ? provenLiteral(body, parsed.model) : undefined
  if (at === undefined) return Buffer.from(JSON.stringify({ ...parsed, model: upstreamModel }))
  return parsed.model === upstreamModel ? body : replaceLiteral(body, at, upstreamModel)
}

/**
 * An answer, or the data of one streamed event, with `model` set to the name that the client asked for: at its top level, or in the
 * `message` of Anthropic's `message_start`.
 * @returns `json` itself when there is no such field, when it says so already, or when this is no JSON object
 */
export function renamedAnswer(json: Buffer, askedName: string): Buffer {
  const parsed = json.includes(TOKEN) ? parseObject(json) : undefined // most events of an Anthropic stream need no parse
  return parsed === undefined ? json : renamedObject(json, parsed, askedName)
}

/** `renamedAnswer` of what is parsed already. @param parsed `JSON.parse` of `json` */
export function renamedObject(json: Buffer, parsed: JsonObject, askedName: string): Buffer {
  const message = asObject(parsed.message)
  const shown = parsed.model ?? message?.model
  if (typeof shown !== 'string' || shown === askedName) return json
  const at = provenLiteral(json, shown)
  if (at !== undefined) return replaceLiteral(json, at, askedName)
  const renamed =
    typeof parsed.model === 'string' ? { ...parsed, model: askedName } : { ...parsed, message: { ...message, model: askedName } }
  return Buffer.from(JSON.stringify(renamed))
}

/** Reads a JSON object. @returns undefined for anything else */
export function parseObject(json: Buffer): JsonObject | undefined {
  try {
    return asObject(JSON.parse(json.toString('utf8')))
  } catch {
    return undefined // not JSON: what that means is the caller's business
  }
}

/** @returns undefined unless `value` is a JSON object */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined
}

interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Where the literal of `model` stands, quotes included, if every parser must find the same one: a single raw `"model"`, whose literal is
 * `value` in its plainest spelling, and no escape that could spell the key otherwise.
 */
function provenLiteral(json: Buffer, value: string): Span | undefined {
  const key = json.indexOf(TOKEN)
  if (key < 0 || json.indexOf(TOKEN, key + TOKEN.length) >= 0) return undefined
  if (json.includes(LOW_ESCAPE) && LETTER_ESCAPES.some((escape) => json.includes(escape))) return undefined
  const colon = skipSpace(json, key + TOKEN.length)
  if (json[colon] !== COLON) return undefined
  const start = skipSpace(json, colon + 1)
  const end = endOfString(json, start)
  if (end === undefined || json.toString('utf8', start, end) !== JSON.stringify(value)) return undefined
  return { start, end }
}

/** One allocation and two copies: this is done for every request. */
function replaceLiteral(json: Buffer, { start, end }: Span, value: string): Buffer {
  const literal = JSON.stringify(value)
  const rest = start + Buffer.byteLength(literal)
  const replaced = Buffer.allocUnsafe(rest + json.length - end)
  json.copy(replaced, 0, 0, start)
  replaced.write(literal, start)
  json.copy(replaced, rest, end)
  return replaced
}

function skipSpace(json: Buffer, from: number): number {
  let at = from
  while (json[at] === 32 || json[at] === 9 || json[at] === 10 || json[at] === 13) at++
  return at
}

/** @returns index after the closing quote */
function endOfString(json: Buffer, start: number): number | undefined {
  if (json[start] !== QUOTE) return undefined
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === BACKSLASH) at++
    else if (json[at] === QUOTE) return at + 1
  }
  return undefined
}
