export type JsonObject = Readonly<Record<string, unknown>>

/** A JSON object in three forms. Searching a string is several times as fast as searching its bytes. */
export interface JsonBody {
  readonly bytes: Buffer
  readonly text: string
  readonly value: JsonObject
}

/** Reads a JSON object. @returns undefined for anything else */
export function readJson(bytes: Buffer): JsonBody | undefined {
  const text = bytes.toString('utf8')
  const value = parseObject(text)
  return value && { bytes, text, value }
}

/** Parses a JSON object. @returns undefined for anything else */
export function parseObject(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined // not JSON; the caller decides what follows
  }
}

/** @returns undefined unless `value` is a JSON object */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined
}

/** Whether an answer with status 200 is an error, as some servers send. */
export function isError({ error, choices, content, output, status }: JsonObject): boolean {
  const hasAnswer = choices !== undefined || content !== undefined || (output !== undefined && status !== 'failed')
  return !hasAnswer && (typeof error === 'string' || asObject(error) !== undefined)
}
