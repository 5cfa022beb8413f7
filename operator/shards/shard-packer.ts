/**
 * Packs one shard again and again. Only blocks with a changed entry are compressed again, since gzip would take most of the time of a single
 * change in a full shard. Consecutive gzip members are one gzip file (RFC 1952, section 2.2).
 */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { shardHeader, type ShardHeader } from '#contract/records/shard-text.ts'

/** Characters of entries in one block. Smaller blocks compress worse; with this size a full shard is one percent larger. */
const BLOCK_CHARACTERS = 32_768

const gzipped: (text: string) => Promise<Buffer> = promisify(gzip)

interface Block {
  readonly texts: readonly string[]
  readonly bytes: Buffer
}

/** Packs the same shard again and again; never twice at once. */
export class ShardPacker {
  readonly #compress: typeof gzipped
  #blocks: readonly Block[] = []

  constructor(compress: typeof gzipped = gzipped) {
    this.#compress = compress
  }

  /**
   * @param texts entries, each without a line break
   * @param version of the header
   * @returns what `unpackShard` reads
   */
  async pack(header: ShardHeader, texts: readonly string[], version: number): Promise<Buffer> {
    const head = await this.#compress(shardHeader({ ...header, entries: texts.length }, version))
    const blocks: Block[] = []
    for (const [index, block] of inBlocks(texts).entries()) {
      const former = this.#blocks[index]
      blocks.push(former && isSame(former.texts, block) ? former : { texts: block, bytes: await this.#compress(`\n${block.join('\n')}`) })
    }
    this.#blocks = blocks
    return Buffer.concat([head, ...blocks.map(({ bytes }) => bytes)])
  }
}

function inBlocks(texts: readonly string[]): string[][] {
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
