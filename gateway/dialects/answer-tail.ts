/** Finds the usage of an answer that is too large to parse. It is near the end, because servers know it last. */
import { type JsonObject, parseObject } from './json-body.ts'
import { changeOfDepth, endOfObject, startOfValue } from './proven-field.ts'

/** Number of bytes at the end that are searched. Only some numbers and names follow the usage. */
const TAIL_BYTES = 16_384
/** Number of nested objects of that name, perhaps written by a model, that the search skips before it gives up. */
const MAX_TRIES = 8
const TOKEN = '"usage"'

/** Keeps the end of an answer while the answer passes. It takes 32 KiB, whatever the size of the pieces. */
export class AnswerTail {
  readonly #bytes = Buffer.allocUnsafe(2 * TAIL_BYTES)
  #length = 0

  add(chunk: Buffer): void {
    const last = chunk.subarray(-TAIL_BYTES)
    if (this.#length + last.length > this.#bytes.length) {
      this.#bytes.copyWithin(0, this.#length - TAIL_BYTES, this.#length)
      this.#length = TAIL_BYTES
    }
    this.#length += last.copy(this.#bytes, this.#length)
  }

  usage(): JsonObject | undefined {
    const start = Math.max(0, this.#length - TAIL_BYTES)
    return usageIn(this.#bytes.toString('latin1', start, this.#length)) // numbers and names are ASCII
  }
}

function usageIn(text: string): JsonObject | undefined {
  let at = text.lastIndexOf(TOKEN)
  for (let tries = 0; at >= 0 && tries < MAX_TRIES; tries++) {
    const start = startOfValue(text, at + TOKEN.length)
    const end = start === undefined ? undefined : endOfObject(text, start)
    if (start !== undefined && end !== undefined && text[at - 1] !== '\\' && changeOfDepth(text, end) === -1) {
      // the rest closes one object, so the object around the usage is the whole answer
      const usage = parseObject(text.slice(start, end))
      return usage && { usage }
    }
    at = at === 0 ? -1 : text.lastIndexOf(TOKEN, at - 1)
  }
  return undefined
}
