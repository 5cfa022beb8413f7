/** How a set of Secrets stores its entries. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { uidIn, UnknownVersion } from '#contract/records/format.ts'
import { RECORDS_KEY } from '#contract/records/mounted-folder.ts'
import { type ShardHeader, shardHeader, unpackShard } from '#contract/records/shard-text.ts'
import { breathe } from '#platform/clock.ts'

/** After this many parsed entries other work of the event loop runs. */
const PARSED_AT_ONCE = 100
/** Characters of entries in one block. Smaller blocks compress worse; with this size a full shard is one percent larger. */
const BLOCK_CHARACTERS = 32_768

const gzipped: (text: string) => Promise<Buffer> = promisify(gzip)

export interface StoredEntry<Entry> {
  /** undefined: another build wrote the entry, and its id is unknown. */
  readonly id: string | undefined
  /** The stored text. It is written back unchanged until the entry is edited, so that fields of newer builds survive. */
  readonly text: string
  /** undefined: another build wrote it. */
  readonly entry: Entry | undefined
  /** Why there is no entry, for example `version 2`. */
  readonly why?: string
}

/** Data of a Secret: values in base64. */
export type ShardData = Readonly<Record<string, string>>

/** Content of a shard. */
export interface DecodedShard<Entry> {
  readonly entries: ReadonlyArray<StoredEntry<Entry>>
  /** Number of damaged entries, which are left out. */
  readonly damaged: number
}

/** Codec of the text of one entry. */
export interface RecordFormat<Entry> {
  /** @throws UnknownVersion for an entry of another build; any other error means damage */
  read(text: string): Entry
  /** @param former text of the replaced entry, whose unknown fields are kept @throws when no reader could read the entry again */
  write(entry: Entry, former: string | undefined): string
  /** Merges two entries of one id; without it an entry of another process replaces the one in memory. */
  readonly merge?: (mine: Entry, theirs: Entry) => Entry
  idOf(entry: Entry): string
  /** Reads the id of a text of any version. */
  idIn(text: string): string | undefined
}

/** Entries whose id is their uid. */
export const BY_UID: Pick<RecordFormat<{ readonly uid: string }>, 'idOf' | 'idIn'> = { idOf: ({ uid }) => uid, idIn: uidIn }

/** Reads and writes the entries of one set. */
export interface ShardCodec<Entry> extends Pick<RecordFormat<Entry>, 'write' | 'merge' | 'idOf'> {
  encode(header: ShardHeader, entries: Iterable<StoredEntry<Entry>>): Promise<ShardData>
  /** @throws UnknownVersion when another build wrote the shard; any other error means that the whole shard is damaged */
  decode(data: ShardData): Promise<DecodedShard<Entry>>
}

/** Codec of gzipped NDJSON under one data key. @param version of the header */
export function recordCodec<Entry>(format: RecordFormat<Entry>, version: () => number): ShardCodec<Entry> {
  const packers = new Map<number, BlockPacker>()
  return {
    ...format,
    async encode(header, entries) {
      const packer = packers.get(header.shard) ?? new BlockPacker()
      packers.set(header.shard, packer)
      const texts = Array.from(entries, ({ text }) => text)
      const bytes = await packer.pack(shardHeader({ ...header, entries: texts.length }, version()), texts)
      return { [RECORDS_KEY]: bytes.toString('base64') }
    },
    async decode(data) {
      const texts = await unpackShard(Buffer.from(data[RECORDS_KEY] ?? '', 'base64'))
      const entries: Array<StoredEntry<Entry>> = []
      for (const [index, text] of texts.entries()) {
        if (index % PARSED_AT_ONCE === PARSED_AT_ONCE - 1) await breathe()
        const entry = readOne(text, format)
        if (entry) entries.push(entry)
      }
      return { entries, damaged: texts.length - entries.length }
    },
  }
}

/**
 * Packs one shard again and again, never twice at once. Only blocks with a changed entry are compressed again, since gzip would take most of
 * the time of a single change in a full shard. Consecutive gzip members are one gzip file (RFC 1952, section 2.2).
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
        return former && isSame(former.texts, block) ? former : { texts: block, bytes: await this.#compress(`\n${block.join('\n')}`) }
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

/** @returns undefined for a damaged entry */
function readOne<Entry>(text: string, format: RecordFormat<Entry>): StoredEntry<Entry> | undefined {
  try {
    const entry = format.read(text)
    return { id: format.idOf(entry), text, entry }
  } catch (error) {
    if (!(error instanceof UnknownVersion)) return undefined // counted by the caller
    return { id: format.idIn(text), text, entry: undefined, why: error.message }
  }
}
