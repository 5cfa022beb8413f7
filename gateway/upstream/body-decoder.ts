import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'

/** What a decoder reports to. */
export interface Decoded {
  data(chunk: Buffer): void
  end(): void
  failed(error: Error): void
}

/** The part of undici's controller that stops and restarts the flow of bytes. */
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

/** A text that inflates more than this is made to fill memory; JSON of a model server inflates ten to fifty times. */
const MAX_RATIO = 100
/** Small answers may inflate as they like, bytes. */
const FREE_BYTES = 262_144
/** What is inflated at once, bytes: a chunk of a socket could become a hundred times as much before its ratio is known. */
const PIECE_BYTES = 4_096

/** Undoes the compression of a backend that compresses although it was asked not to; clients get plain bytes. */
export class BodyDecoder implements Flow {
  readonly #transform: Transform
  readonly #source: Flow
  /** Inflated so far; a piece under way does not count. */
  #bytesIn = 0
  #bytesOut = 0

  /**
   * @param encoding one that `canDecode` accepts
   * @param source where the compressed bytes come from; held while the decoder is full
   */
  constructor(encoding: string, source: Flow, decoded: Decoded) {
    this.#source = source
    this.#transform = (DECODERS[encoding] ?? createGunzip)()
    this.#transform.on('data', (chunk: Buffer) => {
      this.#bytesOut += chunk.length
      if (this.#bytesOut > FREE_BYTES && this.#bytesOut > MAX_RATIO * (this.#bytesIn + PIECE_BYTES))
        this.#transform.destroy(new Error('the answer inflates too much'))
      else decoded.data(chunk)
    })
    this.#transform.on('end', () => decoded.end())
    this.#transform.on('error', (error: Error) => decoded.failed(error))
    this.#transform.on('drain', () => this.#source.resume())
  }

  write(chunk: Buffer): void {
    let hasRoom = true
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      const piece = chunk.subarray(at, at + PIECE_BYTES)
      hasRoom = this.#transform.write(piece, () => (this.#bytesIn += piece.length))
    }
    if (!hasRoom) this.#source.pause()
  }

  end(): void {
    this.#transform.end()
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

/** Whether `content-encoding` names one compression that we know. */
export function canDecode(encoding: string): boolean {
  return Object.hasOwn(DECODERS, encoding)
}
