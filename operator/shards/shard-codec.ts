/** How a set of Secrets stores its entries. */
import type { ShardHeader } from '#contract/records/shard-text.ts'

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

/** Reads and writes the entries of one set. */
export interface ShardCodec<Entry> {
  idOf(entry: Entry): string
  /**
   * @param former text of the entry that this entry replaces: its unknown fields are kept
   * @throws when no reader could read the entry again
   */
  write(entry: Entry, former: string | undefined): string
  encode(header: ShardHeader, entries: Iterable<StoredEntry<Entry>>): Promise<ShardData>
  /**
   * @param data of a Secret, not empty
   * @throws UnknownVersion when another build wrote the shard; any other error means that the whole shard is damaged
   */
  decode(data: ShardData): Promise<DecodedShard<Entry>>
  /**
   * Merges two entries of one id, after another process wrote `theirs`. Without this function an entry of another process replaces the one in
   * memory.
   */
  readonly merge?: ((mine: Entry, theirs: Entry) => Entry) | undefined
}
