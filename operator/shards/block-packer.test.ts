import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { shardHeader, unpackShard } from '#contract/records/shard-text.ts'
import { packShard } from '../../test/support/pack-shard.ts'
import { BlockPacker } from './block-packer.ts'

const PLACE = { shards: 4, shard: 2 }
const pack = (packer: BlockPacker, texts: readonly string[]): Promise<Buffer> =>
  packer.pack(shardHeader({ ...PLACE, entries: texts.length }, 1), texts)
const entries = (count: number, change = ''): string[] =>
  Array.from({ length: count }, (_, n) => JSON.stringify({ uid: `key-${n}`, h: `${n * 7919}`.repeat(8), change }))

describe('a shard that is packed again and again', () => {
  test('reads as it was given after any change', async () => {
    const packer = new BlockPacker()
    const texts = entries(2_000)
    await pack(packer, texts)
    const changes = [
      texts.with(0, '{"uid":"first"}'),
      texts.with(1_000, 'x'.repeat(100_000)),
      texts.toSpliced(700, 300),
      [...texts, '{"uid":"last"}'],
      [],
      texts,
    ]
    for (const changed of changes) expect(await unpackShard(await pack(packer, changed))).toEqual(changed)
  })

  test('compresses what has changed alone: one block', async () => {
    let characters = 0
    const packer = new BlockPacker((text) => {
      characters += text.length
      return Promise.resolve(gzipSync(text))
    })
    const texts = entries(5_000)
    const bytes = await pack(packer, texts)
    expect(bytes.length, 'as compact as in one piece').toBeLessThan((await packShard(PLACE, texts)).length * 1.05)
    for (const changed of [[...texts, '{"uid":"last"}'], texts, texts.with(3_000, texts[3_000]?.replace('key', 'kex') ?? '')]) {
      characters = 0
      await pack(packer, changed)
      expect(characters).toBeLessThan(40_000)
    }
  })

  test('is damaged when it was cut between two blocks', async () => {
    const packer = new BlockPacker()
    const few = await pack(packer, entries(2_000))
    const members = [...few.keys()].filter((at) => few[at] === 0x1f && few[at + 1] === 0x8b && few[at + 2] === 8)
    const cut = few.subarray(0, members.at(-1))
    await expect(unpackShard(cut)).rejects.toThrow(/of 2000 entries/)
  })
})
