/**
 * Texts of entries in gzip blocks. Consecutive gzip members are one gzip file (RFC 1952, section 2.2), so a change compresses only the blocks
 * that it touches, and `unpackShard` reads the blocks of a shard as one text.
 */
import { promisify } from 'node:util'
import { gunzipSync, gzip } from 'node:zlib'

/** Characters of entries in one block. Smaller blocks compress worse; with this size a full shard is one percent larger. */
export const BLOCK_CHARACTERS = 32_768

export const gzipped: (text: string) => Promise<Buffer> = promisify(gzip)

/** Compresses the texts of one block, which follows the header or another block. @param texts each without a line break */
export function packBlock(texts: readonly string[], compress: typeof gzipped = gzipped): Promise<Buffer> {
  return compress(`\n${texts.join('\n')}`)
}

/** The texts of a block. It takes about 0.1 ms. */
export function unpackBlock(bytes: Uint8Array): readonly string[] {
  return gunzipSync(bytes).toString('utf8').slice(1).split('\n')
}

/**
 * Packs one shard again and again, never twice at once. Only blocks with a changed entry are compressed again, since gzip would take most of
 * the time of a single change in a full shard.
 */
export class BlockPacker {
  readonly #compress: typeof gzipped
  #blocks: ReadonlyArray<{ readonly texts: readonly string[]; readonly bytes: Buffer }> = []

  constructor(compress: typeof gzipped = gzipped) {
    this.#compress = compress
  }

  /** @returns what `unpackShard` reads */
  async pack(header: string, texts: readonly string[]): Promise<Buffer> {
    const head = await this.#compress(header)
    this.#blocks = await Promise.all(
      inBlocks(texts).map(async (block, index) => {
        const former = this.#blocks[index]
        return former && isSame(former.texts, block) ? former : { texts: block, bytes: await packBlock(block, this.#compress) }
      }),
    )
    return Buffer.concat([head, ...this.#blocks.map(({ bytes }) => bytes)])
  }
}

function inBlocks(texts: readonly string[]): readonly string[][] {
  const blocks: string[][] = []
  let room = 0
  for (const text of texts) {
    if (room <= 0) {
      blocks.push([])
      room = BLOCK_CHARACTERS
    }
    blocks.at(-1)?.push(text)
    room -= text.length
  }
  return blocks
}

/** Texts of unchanged entries are the same string objects, so each comparison only compares pointers. */
function isSame(former: readonly string[], now: readonly string[]): boolean {
  return former.length === now.length && former.every((text, index) => text === now[index])
}
