/**
 * Text of a shard: gzipped NDJSON, a header and one entry per line. The operator writes shards into Secrets, and gateways read the same
 * bytes from mounted files.
 *
 * Header: `{"v":1,"shards":<number of shards>,"shard":<index>,"entries":<number of entries, optional>}`. Entries are texts with their own
 * version. The gzip file may have several members; the number of entries reveals a cut between two of them.
 */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { z } from 'zod'
import { formatHead, parseFormat } from './format.ts'

const unpack = promisify(gunzip)

const header = z.object({ shards: z.int().positive(), shard: z.int().nonnegative(), entries: z.int().nonnegative().optional() })

/** Position of a shard in its set. */
export interface ShardHeader {
  /** Number of shards in the set. */
  readonly shards: number
  /** Index of this one, from 0. */
  readonly shard: number
  /** Number of entries that follow. */
  readonly entries?: number
}

/** First line of a shard. @param version of the header */
export function shardHeader(place: ShardHeader, version: number): string {
  const { shards, shard, entries } = place
  return JSON.stringify({ ...formatHead(version), shards, shard, entries })
}

/**
 * Unpacks a shard outside of the main thread.
 * @returns the texts of its entries, in order
 * @throws UnknownVersion if another build wrote it and its bytes must stay unchanged; any other error means damage
 */
export async function unpackShard(bytes: Uint8Array): Promise<readonly string[]> {
  const [first = '', ...texts] = (await unpack(bytes)).toString('utf8').split('\n')
  const { entries = texts.length } = header.parse(parseFormat(first))
  if (entries !== texts.length) throw new TypeError(`${texts.length} of ${entries} entries`)
  return texts
}
