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

/** Undoes the compression of a backend that compresses although it was asked not to; clients get plain bytes. */
export class BodyDecoder implements Flow {
  readonly #transform: Transform
  readonly #source: Flow

  /**
   * @param encoding one that `canDecode` accepts
   * @param source where the compressed bytes come from; held while the decoder is full
   */
  constructor(encoding: string, source: Flow, decoded: Decoded) {
    this.#source = source
    this.#transform = (DECODERS[encoding] ?? createGunzip)()
    this.#transform.on('data', (chunk: Buffer) => decoded.data(chunk))
    this.#transform.on('end', () => decoded.end())
    this.#transform.on('error', (error: Error) => decoded.failed(error))
    this.#transform.on('drain', () => this.#source.resume())
  }

  write(chunk: Buffer): void {
    if (!this.#transform.write(chunk)) this.#source.pause()
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
