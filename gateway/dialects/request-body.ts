/**
 * The rule of the request body: the backend reads the authorised model and cost, whatever parser it has (decision 18). The client's own
 * bytes are sent if no parser can read another model in them, or another value of a field that decides the cost of the call. Otherwise the
 * parsed value is serialised again. Afterwards only bytes are kept, neither the text nor the parsed value.
 *
 * Precondition (row 11): no top-level key differs from a deciding field, or from `stream_options`, only in case.
 */
import { asObject, type JsonBody, type JsonObject } from './json-body.ts'
import { COSTS } from './request-shape.ts'
import { edited, isAtMostOnce, provenLiteral, provenObject, type ByteEdit, type ByteSpan } from './proven-field.ts'

const OPENING = '{"model":'
const USAGE_OPTION = 'stream_options'

/** A body in which every parser reads the same deciding fields. */
export interface RequestBody {
  readonly bytes: Buffer
  readonly model: string
  /** Of a form, with its boundary; default: JSON. */
  readonly contentType?: string
  /** Position of `model`: of its literal, quotes included, or of the text of a form's field. */
  readonly modelAt: ByteSpan
  /** The edit that requests the usage of the stream. undefined: the client requests it, or it cannot be requested. */
  readonly usageEdit?: ByteEdit | undefined
}

/** @param body its `model` is the authorised string @param asksUsage prepare an edit that requests the usage of a stream */
export function requestBody(body: JsonBody, model: string, asksUsage = false): RequestBody {
  // of two fields with one name, some parsers take the first and others the last
  const modelAt = COSTS.every((field) => body.value[field] === undefined || isAtMostOnce(body.text, field))
    ? provenLiteral(body, 'model', model)
    : undefined
  const isOption = asksUsage && canAskUsage(body.value[USAGE_OPTION])
  const usageEdit = isOption && modelAt !== undefined ? usageEditOf(body, modelAt) : undefined
  const isProven = modelAt !== undefined && (usageEdit !== undefined || !isOption)
  return isProven ? { bytes: body.bytes, model, modelAt, usageEdit } : writtenBody(body.value, model, isOption)
}

/** Makes the bytes for one server. @returns the same buffer if nothing changes */
export function bytesFor(
  { bytes, model, modelAt, usageEdit, contentType }: RequestBody,
  upstreamModel: string,
  { asksUsage, salt }: { readonly asksUsage: boolean; readonly salt?: string | undefined },
): Buffer {
  const edits: ByteEdit[] = []
  if (model !== upstreamModel) edits.push({ ...modelAt, text: contentType === undefined ? JSON.stringify(upstreamModel) : upstreamModel })
  if (asksUsage && usageEdit !== undefined) edits.push(usageEdit)
  if (salt !== undefined) edits.push({ start: modelAt.end, end: modelAt.end, text: `,"cache_salt":"${salt}"` }) // a client's own was refused
  if (edits.length === 0) return bytes
  edits.sort((a, b) => a.start - b.start)
  return edited(bytes, edits)
}

/** Whether usage can be requested. Options that are neither absent nor null nor an object are refused by the server. */
function canAskUsage(options: unknown): boolean {
  return options === undefined || options === null || asObject(options) !== undefined
}

function usageEditOf(body: JsonBody, { end }: ByteSpan): ByteEdit | undefined {
  const options = body.value[USAGE_OPTION]
  const at = options === undefined ? { start: end, end } : provenObject(body, USAGE_OPTION)
  return at && withUsage(options, at)
}

/** @param at position of the options; without any, the end of the model, where a field may always follow */
function withUsage(options: unknown, at: ByteSpan): ByteEdit {
  const text = JSON.stringify({ ...asObject(options), include_usage: true })
  return { ...at, text: options === undefined ? `,"${USAGE_OPTION}":${text}` : text }
}

/** Serialises a value: `model` first and the options next, so that their positions are known. @param isOption prepare an edit that requests the usage */
export function writtenBody(value: JsonObject, model: string, isOption: boolean): RequestBody {
  const { model: _, [USAGE_OPTION]: options, ...others } = value
  const rest = JSON.stringify(others)
  const named = OPENING + JSON.stringify(model)
  const written = options === undefined ? '' : JSON.stringify(options)
  const optioned = options === undefined ? named : `${named},"${USAGE_OPTION}":${written}`
  const bytes = Buffer.from(rest === '{}' ? `${optioned}}` : `${optioned},${rest.slice(1)}`)
  const modelAt = { start: OPENING.length, end: Buffer.byteLength(named) }
  const end = Buffer.byteLength(optioned)
  const usageEdit = isOption ? withUsage(options, { start: end - Buffer.byteLength(written), end }) : undefined
  return { bytes, model, modelAt, usageEdit }
}
