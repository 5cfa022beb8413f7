import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { FORMAT } from '#contract/records/format.ts'
import { type ShardHeader, shardHeader } from '#contract/records/shard-text.ts'

const pack = promisify(gzip)

/**
 * Packs a shard in one piece.
 * @param texts entries, each without a line break
 * @param version of the header
 * @returns gzipped bytes
 */
export function packShard(place: ShardHeader, texts: readonly string[], version: number = FORMAT.writes): Promise<Buffer> {
  return pack([shardHeader(place, version), ...texts].join('\n'))
}
