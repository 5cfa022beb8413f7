import { promisify } from 'node:util'
import { deflateRaw } from 'node:zlib'
import { UnknownVersion } from '#contract/records/format.ts'
import { RECORDS_KEY } from '#contract/records/mounted-folder.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import { breathe } from '#platform/breathe.ts'
import type { DecodedShard, ShardCodec, StoredEntry } from './shard-codec.ts'
import { ShardPacker } from './shard-packer.ts'

const deflated = promisify(deflateRaw)

/** After this many parsed entries other work of the event loop runs. */
const PARSED_AT_ONCE = 100

/** Codec of one entry. */
export interface RecordFormat<Entry> {
  idOf(entry: Entry): string
  /** The id in a text of any version. */
  idIn(text: string): string | undefined
  /** @throws UnknownVersion for an entry of another build; any other error means damage */
  read(text: string): Entry
  /**
   * @param former text of the entry that this one replaces
   * @throws when no reader could read the entry again
   */
  write(entry: Entry, former: string | undefined): string
}

/**
 * Codec of gzipped NDJSON under one data key: keyring entries, model records.
 * @param version of the header
 */
export function recordCodec<Entry>(format: RecordFormat<Entry>, version: () => number): ShardCodec<Entry> {
  const packers = new Map<number, ShardPacker>()
  return {
    idOf: (entry) => format.idOf(entry),
    write: (entry, former) => format.write(entry, former),
    weigh: async (text) => (await deflated(text)).length,
    async encode(header, entries) {
      const packer = packers.get(header.shard) ?? new ShardPacker()
      packers.set(header.shard, packer)
      const texts = Array.from(entries, ({ text }) => text)
      const bytes = await packer.pack(header, texts, version())
      return { [RECORDS_KEY]: bytes.toString('base64') }
    },
    async decode(data) {
      return readAll(await unpackShard(Buffer.from(data[RECORDS_KEY] ?? '', 'base64')), format)
    },
  }
}

async function readAll<Entry>(texts: readonly string[], format: RecordFormat<Entry>): Promise<DecodedShard<Entry>> {
  const entries: Array<StoredEntry<Entry>> = []
  let damaged = 0
  for (const [index, text] of texts.entries()) {
    if (index % PARSED_AT_ONCE === PARSED_AT_ONCE - 1) await breathe()
    const entry = readOne(text, format)
    if (entry) entries.push(entry)
    else damaged += 1
  }
  return { entries, damaged }
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
