import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { UnknownVersion } from './format.ts'
import { unpackShard } from './shard-text.ts'
import { packShard } from '../../../test/support/pack-shard.ts'

describe('a shard', () => {
  test('is gzipped text under a header, and reads back as it was written', async () => {
    const bytes = await packShard({ shards: 32, shard: 5 }, ['{"v":1}', '{"v":2}'])
    expect(gunzipSync(bytes).toString()).toBe('{"v":1,"shards":32,"shard":5}\n{"v":1}\n{"v":2}')
    expect(await unpackShard(bytes)).toEqual(['{"v":1}', '{"v":2}'])
    expect(await unpackShard(await packShard({ shards: 1, shard: 0 }, []))).toEqual([])
  })

  test.each([
    ['another version', '{"v":2,"any":"shape"}'],
    ['a need that this build lacks', '{"v":1,"needs":["zstd"],"shards":1,"shard":0}'],
  ])('of %s is not called damaged', async (_, header) => {
    await expect(unpackShard(gzipSync(header))).rejects.toThrow(UnknownVersion)
  })

  test.each([
    ['cut short', gzipSync('{"v":1,"shards":1,"shard":0}\n{"v":1}').subarray(0, 30)],
    ['a text without gzip', Buffer.from('{}')],
    ['empty', Buffer.alloc(0)],
    ['without a header', gzipSync('{"uid":"a"}')],
  ])('that is %s is damaged', async (_, bytes) => {
    const read = unpackShard(bytes)
    await expect(read).rejects.toThrow()
    await expect(read).rejects.not.toThrow(UnknownVersion)
  })
})
