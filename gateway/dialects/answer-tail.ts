/** The usage of an answer that is too large to be parsed: it stands near the end, since it is known last. */
import { type JsonObject, parseObject } from './json-body.ts'
import { changeOfDepth, endOfObject, startOfValue } from './proven-field.ts'

/** More of an answer's end is not searched. Behind the usage stand some numbers and names at most. */
const TAIL_BYTES = 16_384
/** Objects of this name further inside, which a model may have written, are passed over; more of them are not looked at. */
const MAX_LOOKS = 8
const TOKEN = '"usage"'

/** Keeps the end of an answer while it flows by. Takes 32 KiB, whatever the size of its pieces. */
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

  /** The usage at the top level of the answer, in an object as the answer itself would have it. */
  usage(): JsonObject | undefined {
    const start = Math.max(0, this.#length - TAIL_BYTES)
    return usageIn(this.#bytes.toString('latin1', start, this.#length)) // figures and names are ASCII
  }
}

function usageIn(text: string): JsonObject | undefined {
  let at = text.lastIndexOf(TOKEN)
  for (let looks = 0; at >= 0 && looks < MAX_LOOKS; looks++) {
    const start = startOfValue(text, at + TOKEN.length)
    const end = start === undefined ? undefined : endOfObject(text, start)
    if (start !== undefined && end !== undefined && text[at - 1] !== '\\' && closesOneLevel(text, end)) {
      const usage = parseObject(text.slice(start, end))
      return usage && { usage }
    }
    at = at === 0 ? -1 : text.lastIndexOf(TOKEN, at - 1)
  }
  return undefined
}

/** Whether the rest of a JSON text closes just the object that it is in: only then that object is the whole answer. */
function closesOneLevel(text: string, from: number): boolean {
  return changeOfDepth(text, from) === -1
}
