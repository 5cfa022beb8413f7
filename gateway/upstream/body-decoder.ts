import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress, type Zlib } from 'node:zlib'

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

const DECODERS: Readonly<Record<string, () => Transform & Zlib>> = {
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

const INFLATES_TOO_MUCH = new Error('the answer inflates too much')

/** Decompresses the answer of a backend that compresses although the gateway asked for plain bytes. Clients get plain bytes. */
export class BodyDecoder implements Flow {
  readonly #transform: Transform & Zlib
  readonly #source: Flow
  #bytesOut = 0

  /** @param encoding one that `canDecode` accepts @param source paused while bytes wait to be inflated */
  constructor(encoding: string, source: Flow, decoded: Decoded) {
    this.#source = source
    this.#transform = (DECODERS[encoding] ?? createGunzip)()
    this.#transform.on('data', (chunk: Buffer) => {
      this.#bytesOut += chunk.length
      // `bytesWritten` counts the bytes that are inflated: a chunk of a socket could become a hundred times as much before the next one
      if (this.#bytesOut > FREE_BYTES && this.#bytesOut > MAX_RATIO * this.#transform.bytesWritten)
        this.#transform.destroy(INFLATES_TOO_MUCH)
      else decoded.data(chunk)
    })
    this.#transform.on('drain', () => source.resume())
    this.#transform.on('end', () => decoded.end())
    this.#transform.on('error', (error: Error) => decoded.failed(error))
  }

  write(chunk: Buffer): void {
    if (!this.#transform.destroyed && !this.#transform.write(chunk)) this.#source.pause()
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

/** Whether `content-encoding` names one known compression. */
export function canDecode(encoding: string): boolean {
  return Object.hasOwn(DECODERS, encoding)
}
