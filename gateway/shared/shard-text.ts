/**
 * Text of one shard: gzipped NDJSON, a header and one entry per text line. The operator writes shards into Secrets; gateways read the
 * same bytes from mounted files.
 *
 * Header: `{"v":1,"shards":<number of shards>,"shard":<index>}`. Entries are versioned texts of their own.
 */
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { z } from 'zod'
import { FORMAT, formatHead, parseFormat } from './format.ts'

const pack = promisify(gzip)
const unpack = promisify(gunzip)

const header = z.object({ shards: z.int().positive(), shard: z.int().nonnegative() })

/** Place of a shard in its set. */
export interface ShardHeader {
  /** Number of shards in the set. */
  readonly shards: number
  /** Index of this one, from 0. */
  readonly shard: number
}

/**
 * Packs a shard.
 * @param texts entries, each without a line break
 * @param version of the header
 * @returns gzipped bytes
 */
export function packShard({ shards, shard }: ShardHeader, texts: readonly string[], version: number = FORMAT.writes): Promise<Buffer> {
  return pack([JSON.stringify({ ...formatHead(version), shards, shard }), ...texts].join('\n'))
}

/**
 * Unpacks a shard, off the main thread.
 * @returns the texts of its entries, in order
 * @throws UnknownVersion when another build wrote it: the bytes must stay as they are; any other error means damage
 */
export async function unpackShard(bytes: Uint8Array): Promise<readonly string[]> {
  const [first = '', ...texts] = (await unpack(bytes)).toString('utf8').split('\n')
  header.parse(parseFormat(first))
  return texts
}
