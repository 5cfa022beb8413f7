/** Chunks below this size, bytes, are copied together: each object has some hundred bytes of its own. */
const SHORT_BYTES = 1_024
/** Size of the largest memory into which short chunks are copied, bytes. */
const MAX_BLOCK_BYTES = 16_384

/** Bytes that arrive in chunks. They take hardly more memory than they have bytes, even if a sender chose chunks of one byte. */
export class ChunkList {
  bytes = 0
  #chunks: Buffer[] = []
  /** Memory for short chunks. Its part from `#start` to `#end` follows `#chunks`. */
  #block: Buffer | undefined = undefined
  #start = 0
  #end = 0

  /** Keeps the first chunk and long ones as they are, and copies all others. */
  add(chunk: Buffer): void {
    if (chunk.length === 0) return
    if (this.bytes > 0 && chunk.length < SHORT_BYTES) this.#copy(chunk)
    else {
      this.#endPart()
      this.#chunks.push(chunk)
    }
    this.bytes += chunk.length
  }

  /** Empties the list. @returns all bytes: the only chunk itself, or a copy of several */
  take(): Buffer {
    this.#endPart()
    const [first] = this.#chunks
    const whole = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks, this.bytes)
    this.clear()
    return whole
  }

  clear(): void {
    this.#chunks = []
    this.#block = undefined
    this.#start = this.#end = this.bytes = 0
  }

  #copy(chunk: Buffer): void {
    if (this.#block === undefined || this.#block.length - this.#end < chunk.length) {
      this.#endPart()
      this.#block = Buffer.allocUnsafe(Math.min(MAX_BLOCK_BYTES, Math.max(SHORT_BYTES, this.bytes)))
      this.#start = this.#end = 0
    }
    this.#block.set(chunk, this.#end)
    this.#end += chunk.length
  }

  #endPart(): void {
    if (this.#block === undefined || this.#start === this.#end) return
    this.#chunks.push(this.#block.subarray(this.#start, this.#end))
    this.#start = this.#end
  }
}
