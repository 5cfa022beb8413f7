import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'

/** Receiver of a decoder's output. */
export interface Decoded {
  data(chunk: Buffer): void
  end(): void
  failed(error: Error): void
}

/** The part of undici's controller that pauses and resumes the flow of bytes. */
export interface Flow {
  pause(): void
  resume(): void
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** A text with a higher ratio is an attempt to fill memory. JSON of a model server inflates ten to fifty times. */
const MAX_RATIO = 100
/** Answers up to this size, bytes, may have any ratio. */
const FREE_BYTES = 131_072
/** Bytes that are inflated at once: a chunk of a socket could become a hundred times as much before its ratio is known. */
const PIECE_BYTES = 1_024

const INFLATES_TOO_MUCH = new Error('the answer inflates too much')

/** Decompresses the answer of a backend that compresses although the gateway asked for plain bytes. Clients get plain bytes. */
export class BodyDecoder implements Flow {
  readonly #transform: Transform
  readonly #source: Flow
  readonly #chunks: Buffer[] = []
  /** Position in the first chunk. */
  #at = 0
  #isBusy = false
  #hasEnded = false
  /** Including the piece in progress. */
  #bytesIn = 0
  #bytesOut = 0

  /** @param encoding one that `canDecode` accepts @param source paused while bytes wait to be inflated */
  constructor(encoding: string, source: Flow, decoded: Decoded) {
    this.#source = source
    this.#transform = (DECODERS[encoding] ?? createGunzip)()
    this.#transform.on('data', (chunk: Buffer) => {
      this.#bytesOut += chunk.length
      if (this.#bytesOut > FREE_BYTES && this.#bytesOut > MAX_RATIO * this.#bytesIn) this.#transform.destroy(INFLATES_TOO_MUCH)
      else decoded.data(chunk)
    })
    this.#transform.on('end', () => decoded.end())
    this.#transform.on('error', (error: Error) => decoded.failed(error))
  }

  write(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#source.pause()
    this.#next()
  }

  end(): void {
    this.#hasEnded = true
    this.#next()
  }

  /** Inflates one piece after the other, because every piece that waits inside a destroyed stream causes an error. */
  #next(): void {
    if (this.#isBusy || this.#transform.destroyed) return
    const piece = this.#take()
    if (piece === undefined) return void (this.#hasEnded ? this.#transform.end() : this.#source.resume())
    this.#bytesIn += piece.length
    this.#isBusy = true
    this.#transform.write(piece, () => {
      this.#isBusy = false
      this.#next()
    })
  }

  #take(): Buffer | undefined {
    const [first] = this.#chunks
    if (first === undefined) return undefined
    const piece = first.subarray(this.#at, this.#at + PIECE_BYTES)
    this.#at += piece.length
    if (this.#at >= first.length) {
      this.#chunks.shift()
      this.#at = 0
    }
    return piece
  }

  pause(): void {
    this.#transform.pause()
  }

  resume(): void {
    this.#transform.resume()
  }

  destroy(): void {
    this.#transform.destroy()
  }
}

/** Whether `content-encoding` names one known compression. */
export function canDecode(encoding: string): boolean {
  return Object.hasOwn(DECODERS, encoding)
}
