/**
 * The rule of the request body: what was authorised is what the backend reads, whatever parser it has. The client's own bytes go on when
 * no parser can read another model, or another value of a field that decides what the call costs; otherwise the parsed value is written
 * out anew. From here on only bytes are kept: neither the text nor the parsed value outlives the checks.
 *
 * Precondition (row 11): no top-level key equals a deciding field but for case.
 */
import type { JsonBody } from './json-body.ts'
import { edited, isAtMostOnce, provenLiteral, type ByteSpan } from './proven-field.ts'

/**
 * Fields that decide what a call costs: of two of them one parser takes the first, and another one the last. Of a field that the parsed value
 * lacks there is none at the top level.
 */
const COSTS = ['stream', 'n', 'max_tokens', 'max_completion_tokens']
const OPENING = '{"model":'

/** A body in which every parser reads the same deciding fields. */
export interface RequestBody {
  readonly bytes: Buffer
  /** As it was authorised. */
  readonly model: string
  /** Where the literal of `model` stands, quotes included. */
  readonly modelAt: ByteSpan
}

/** Makes the body to send. @param body its `model` is the string that was authorised */
export function requestBody(body: JsonBody, model: string): RequestBody {
  const modelAt = COSTS.every((field) => body.value[field] === undefined || isAtMostOnce(body.text, field))
    ? provenLiteral(body, 'model', model)
    : undefined
  return modelAt === undefined ? writtenAnew(body, model) : { bytes: body.bytes, model, modelAt }
}

/** The bytes for a server that knows the model by another name. @returns the same buffer when the name is the same */
export function bytesFor({ bytes, model, modelAt }: RequestBody, upstreamModel: string): Buffer {
  return model === upstreamModel ? bytes : edited(bytes, [{ ...modelAt, text: JSON.stringify(upstreamModel) }])
}

/** `model` comes first, so that its place is known. */
function writtenAnew({ value }: JsonBody, model: string): RequestBody {
  const { model: _, ...others } = value
  const rest = JSON.stringify(others)
  const head = OPENING + JSON.stringify(model)
  const bytes = Buffer.from(rest === '{}' ? `${head}}` : `${head},${rest.slice(1)}`)
  return { bytes, model, modelAt: { start: OPENING.length, end: Buffer.byteLength(head) } }
}
