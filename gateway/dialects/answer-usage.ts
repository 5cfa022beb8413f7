/** Finds the usage of an answer that is too large to parse: the object `usage` at the top level of the answer, wherever it stands. */
import { type JsonObject, parseObject } from './json-body.ts'

/** A usage object has some numbers and names. A longer one is no usage. */
const MAX_USAGE_BYTES = 16_384
const NAME = 'usage'

const QUOTE = 34
const BACKSLASH = 92
const COLON = 58
const COMMA = 44
const OPENING_BRACE = 123
const CLOSING_BRACE = 125
const OPENING_BRACKET = 91
const CLOSING_BRACKET = 93

/** Reads an answer while it passes, in pieces of any size. Strings are skipped by native searches, so that long texts cost little. */
export class AnswerUsage {
  #depth = 0
  #isInString = false
  /** Whether the last byte was a backslash that escapes the next one. */
  #isEscaped = false
  /** The last string at the top level, as far as it can be the name. */
  #word: string | undefined = undefined
  /** Whether the value that comes next at the top level is that of `usage`. */
  #isNamed = false
  #kept: Buffer[] | undefined = undefined
  #keptBytes = 0
  /** Index in the present chunk. */
  #keptFrom = 0
  #usage: JsonObject | undefined = undefined

  add(chunk: Buffer): void {
    this.#keptFrom = 0
    for (let at = 0; at < chunk.length; at++) {
      if (this.#isInString) at = this.#stringEnd(chunk, at)
      else this.#read(chunk, at)
    }
    if (this.#kept) this.#keep(chunk.subarray(this.#keptFrom))
  }

  /** @returns the last usage of the answer so far */
  usage(): JsonObject | undefined {
    return this.#usage && { usage: this.#usage }
  }

  /** Reads a byte outside of strings. */
  #read(chunk: Buffer, at: number): void {
    const byte = chunk[at]
    if (byte === QUOTE) this.#openString()
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) this.#open(at)
    else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) this.#close(chunk, at)
    else if (this.#depth === 1 && byte === COLON) this.#isNamed = this.#word === NAME
    else if (this.#depth === 1 && byte === COMMA) this.#isNamed = false
  }

  #openString(): void {
    this.#isInString = true
    this.#word = this.#depth === 1 ? '' : undefined
  }

  #open(at: number): void {
    if (this.#depth++ !== 1 || !this.#isNamed) return
    this.#kept = []
    this.#keptBytes = 0
    this.#keptFrom = at
  }

  #close(chunk: Buffer, at: number): void {
    this.#depth--
    if (this.#depth === 1 && this.#kept) this.#take(chunk.subarray(this.#keptFrom, at + 1))
  }

  /** @returns index of the last byte of the string in this chunk */
  #stringEnd(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length;) {
      if (this.#isEscaped) {
        this.#isEscaped = false
        at++
        continue
      }
      const found = chunk.indexOf(QUOTE, at)
      const quote = found < 0 ? chunk.length : found
      const backslash = chunk.subarray(at, quote).indexOf(BACKSLASH)
      const end = backslash < 0 ? quote : at + backslash
      this.#addWord(chunk, at, end)
      if (end === chunk.length) break
      if (end === quote) {
        this.#isInString = false
        return end
      }
      this.#isEscaped = true
      this.#word = undefined
      at = end + 1
    }
    return chunk.length
  }

  #addWord(chunk: Buffer, from: number, end: number): void {
    if (this.#word === undefined) return
    const length = this.#word.length + end - from
    this.#word = length > NAME.length ? undefined : this.#word + chunk.toString('latin1', from, end)
  }

  #keep(part: Buffer): void {
    this.#keptBytes += part.length
    if (this.#keptBytes > MAX_USAGE_BYTES) this.#kept = undefined
    else this.#kept?.push(Buffer.from(part)) // a copy, because the chunk may be used again
  }

  #take(last: Buffer): void {
    this.#keep(last)
    const text = this.#kept && Buffer.concat(this.#kept).toString('latin1') // numbers and names are ASCII
    this.#kept = undefined
    this.#usage = (text && parseObject(text)) || this.#usage
  }
}
