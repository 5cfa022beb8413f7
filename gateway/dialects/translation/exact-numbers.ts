/** Integers of tool calls that no double holds keep their digits. An id that was rounded would be that of something else. */
import { asObject, type JsonObject } from '../json-body.ts'

/** Maximum number of values of a text whose numbers are read exactly. A reviver takes a hundred times as long as parsing alone. */
const MAX_VALUES = 16_384
const LONG_NUMBER = /\d{16}/
const INTEGER = /^-?\d+$/
/** Newer than TypeScript's declarations. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown }

/** @param value what `text` was parsed to @returns the same for `JSON.stringify`, with all digits of its integers */
export function exactValue<T>(value: T, text: string): T {
  return LONG_NUMBER.test(text) && valuesLeft(value, MAX_VALUES) >= 0 ? (JSON.parse(text, exactNumber) as T) : value
}

/** @param text of the body @returns the body with exact inputs of tool calls. Everything else stays as parsed, since it is read as numbers */
export function withExactInputs(body: JsonObject, text: string): JsonObject {
  const exact = exactValue(body, text)
  if (exact === body) return body
  const messages = listOf(exact.messages)
  return { ...body, messages: listOf(body.messages).map((message, at) => withInputs(message, listOf(asObject(messages[at])?.content))) }
}

function withInputs(message: unknown, exact: readonly unknown[]): unknown {
  const { content } = asObject(message) ?? {}
  if (!Array.isArray(content)) return message
  const blockAt = (value: unknown, at: number): unknown => {
    const block = asObject(value)
    return asObject(block?.input) === undefined ? value : { ...block, input: asObject(exact[at])?.input }
  }
  return { ...asObject(message), content: content.map(blockAt) }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function exactNumber(_: string, value: unknown, { source = '' }: { readonly source?: string } = {}): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) && INTEGER.test(source) ? rawJSON(source) : value
}

/** @returns `left` less the number of values; below 0, the rest was not counted */
function valuesLeft(value: unknown, left: number): number {
  if (typeof value !== 'object' || value === null) return left
  const values: unknown[] = Array.isArray(value) ? value : Object.values(value)
  let rest = left - values.length
  for (const inner of values) if (rest >= 0) rest = valuesLeft(inner, rest)
  return rest
}
