import { Readable } from 'node:stream'

const PIECE_BYTES = 65_536
/** The last pieces wait in buffers of this process until the server reads them, so there are few. */
const AHEAD_BYTES = 65_536

/**
 * A large body on its way to a server. Each piece is a copy, so that the body itself may be dropped as soon as its last piece was read from
 * the stream: a part of a buffer keeps all of it in memory.
 */
export class BodyStream extends Readable {
  #bytes: Buffer | undefined
  #at = 0

  constructor(bytes: Buffer) {
    super({ highWaterMark: AHEAD_BYTES })
    this.#bytes = bytes
  }

  /** Whether the stream needs the body no longer. */
  get isSent(): boolean {
    return this.#bytes === undefined
  }

  override _read(): void {
    const bytes = this.#bytes
    if (bytes === undefined) return
    const end = this.#at + PIECE_BYTES
    this.push(Buffer.from(bytes.subarray(this.#at, end)))
    this.#at = end
    if (end < bytes.length) return
    this.#bytes = undefined
    this.push(null)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#bytes = undefined
    done(error)
  }
}
