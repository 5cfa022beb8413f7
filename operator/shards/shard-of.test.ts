import { describe, expect, test } from 'vitest'
import { shardOf } from './shard-of.ts'

const uids = Array.from({ length: 4_000 }, (_, index) => `7d3c1e2a-0000-4000-8000-${String(index).padStart(12, '0')}`)

describe('shardOf', () => {
  test('puts a uid into the same shard in every process and release', () => {
    // fixed values: another rule would leave every issued key in a shard that no process reads
    expect(['a', 'b', 'c', '7d3c1e2a-5a1b-4c39-9f0e-0c1d2e3f4a5b'].map((uid) => shardOf(uid, 32))).toEqual([25, 7, 5, 9])
    expect(shardOf('a', 1)).toBe(0)
  })

  test.each([1, 2, 32, 1000])('spreads keys evenly over %i shards, and only over these', (shards) => {
    const counts = new Map<number, number>()
    for (const uid of uids) counts.set(shardOf(uid, shards), (counts.get(shardOf(uid, shards)) ?? 0) + 1)
    expect(Math.min(...counts.keys())).toBeGreaterThanOrEqual(0)
    expect(Math.max(...counts.keys())).toBeLessThan(shards)
    expect(Math.max(...counts.values())).toBeLessThan((uids.length / shards) * 2 + 10)
  })
})
