/** How a set of Secrets stores its entries. */
import { uidIn, UnknownVersion } from '#contract/records/format.ts'
import { RECORDS_KEY } from '#contract/records/mounted-folder.ts'
import { type ShardHeader, shardHeader, unpackShard } from '#contract/records/shard-text.ts'
import { breathe } from '#platform/clock.ts'
import { BlockPacker, gzipped } from './block-packer.ts'
import { PackedEntries } from './packed-entries.ts'

/** After this many parsed entries other work of the event loop runs. */
const PARSED_AT_ONCE = 100

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
  /** Compresses the entries of a shard for the memory of the operator; absent: they stay objects. `encode` takes the result too. */
  readonly pack?: (entries: ReadonlyMap<string, StoredEntry<Entry>>) => Promise<PackedEntries<Entry>>
}

/**
 * Codec of gzipped NDJSON under one data key.
 * @param version of the header
 * @param options.staysPacked for very many small entries: they stay compressed in memory
 */
export function recordCodec<Entry>(format: RecordFormat<Entry>, version: () => number, { staysPacked = false } = {}): ShardCodec<Entry> {
  const packers = new Map<number, BlockPacker>()
  const pack = (entries: ReadonlyMap<string, StoredEntry<Entry>>): Promise<PackedEntries<Entry>> =>
    new PackedEntries<Entry>((text) => readOne(text, format)).edited(entries)
  return {
    ...format,
    ...(staysPacked && { pack }),
    async encode(header, entries) {
      if (entries instanceof PackedEntries) {
        const head = await gzipped(shardHeader({ ...header, entries: entries.size }, version()))
        return { [RECORDS_KEY]: Buffer.concat([head, ...entries.blocks]).toString('base64') }
      }
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
