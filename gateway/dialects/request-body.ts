/**
 * The rule of the request body: what was authorised is what the backend reads, whatever parser it has. The client's own bytes go on when
 * no parser can read another model, or another value of a field that decides what the call costs; otherwise the parsed value is written
 * out anew. From here on only bytes are kept: neither the text nor the parsed value outlives the checks.
 *
 * Precondition (row 11): no top-level key equals a deciding field, or `stream_options`, but for case.
 */
import { asObject, type JsonBody } from './json-body.ts'
import { edited, isAtMostOnce, provenLiteral, provenObject, type ByteEdit, type ByteSpan } from './proven-field.ts'

/**
 * Fields that decide what a call costs: of two of them one parser takes the first, and another one the last. Of a field that the parsed value
 * lacks there is none at the top level.
 */
const COSTS = ['stream', 'n', 'max_tokens', 'max_completion_tokens']
const OPENING = '{"model":'
const USAGE_OPTION = 'stream_options'

/** A body in which every parser reads the same deciding fields. */
export interface RequestBody {
  readonly bytes: Buffer
  /** As it was authorised. */
  readonly model: string
  /** Where the literal of `model` stands, quotes included. */
  readonly modelAt: ByteSpan
  /** What asks the server for the usage of the stream. undefined: the client asks for it, or nobody can. */
  readonly usageEdit?: ByteEdit | undefined
}

/** What a body becomes for one server. */
export interface BodyEdits {
  /** The name that the server knows the model by. */
  readonly upstreamModel: string
  /** Ask for the usage where the client does not. */
  readonly asksUsage: boolean
}

/**
 * Makes the body to send.
 * @param body its `model` is the string that was authorised
 * @param asksUsage prepare for servers that are asked for the usage of a stream, which the client has not asked for
 */
export function requestBody(body: JsonBody, model: string, asksUsage = false): RequestBody {
  const modelAt = COSTS.every((field) => body.value[field] === undefined || isAtMostOnce(body.text, field))
    ? provenLiteral(body, 'model', model)
    : undefined
  const isOption = asksUsage && canAskUsage(body.value[USAGE_OPTION])
  const usageEdit = isOption && modelAt !== undefined ? usageEditOf(body, modelAt) : undefined
  const isProven = modelAt !== undefined && (usageEdit !== undefined || !isOption)
  return isProven ? { bytes: body.bytes, model, modelAt, usageEdit } : writtenAnew(body, model, isOption)
}

/** The bytes for one server. @returns the same buffer when nothing has to change */
export function bytesFor({ bytes, model, modelAt, usageEdit }: RequestBody, { upstreamModel, asksUsage }: BodyEdits): Buffer {
  const edits: ByteEdit[] = []
  if (model !== upstreamModel) edits.push({ ...modelAt, text: JSON.stringify(upstreamModel) })
  if (asksUsage && usageEdit !== undefined) edits.push(usageEdit)
  return edits.length === 0 ? bytes : edited(bytes, edits.toSorted(leftFirst))
}

function leftFirst(a: ByteSpan, b: ByteSpan): number {
  return a.start - b.start
}

/** What is neither absent nor null nor an object is for the server to refuse. */
function canAskUsage(options: unknown): boolean {
  return options === undefined || options === null || asObject(options) !== undefined
}

/** @returns undefined unless every parser must find the options that are replaced */
function usageEditOf(body: JsonBody, modelAt: ByteSpan): ByteEdit | undefined {
  const options = body.value[USAGE_OPTION]
  if (options === undefined) return addedOption(modelAt)
  const at = provenObject(body, USAGE_OPTION)
  return at && { ...at, text: withUsage(options) }
}

/** Behind the model: whatever follows it, a field may stand there. */
function addedOption({ end }: ByteSpan): ByteEdit {
  return { start: end, end, text: `,"${USAGE_OPTION}":${withUsage(undefined)}` }
}

function withUsage(options: unknown): string {
  return JSON.stringify({ ...asObject(options), include_usage: true })
}

/** `model` comes first and the options next, so that their places are known. */
function writtenAnew({ value }: JsonBody, model: string, isOption: boolean): RequestBody {
  const { model: _, [USAGE_OPTION]: options, ...others } = value
  const rest = JSON.stringify(others)
  const named = OPENING + JSON.stringify(model)
  const optioned = options === undefined ? named : `${named},"${USAGE_OPTION}":${JSON.stringify(options)}`
  const bytes = Buffer.from(rest === '{}' ? `${optioned}}` : `${optioned},${rest.slice(1)}`)
  const modelAt = { start: OPENING.length, end: Buffer.byteLength(named) }
  return { bytes, model, modelAt, usageEdit: isOption ? writtenEdit(options, modelAt, Buffer.byteLength(optioned)) : undefined }
}

/** @param end of the written options */
function writtenEdit(options: unknown, modelAt: ByteSpan, end: number): ByteEdit {
  if (options === undefined) return addedOption(modelAt)
  return { start: end - Buffer.byteLength(JSON.stringify(options)), end, text: withUsage(options) }
}
