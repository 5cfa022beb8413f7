import { expect, test } from 'vitest'
import { redisKeys } from './redis-keys.ts'

test('keys have the names that the access rules of Redis are written for', () => {
  const keys = redisKeys('hg')
  expect([keys.meta, keys.log, keys.pods, keys.acks]).toEqual(['hg:{proj}:meta', 'hg:{proj}:log', 'hg:{proj}:pods', 'hg:{proj}:acks'])
  expect(keys.records('01J', 'key')).toBe('hg:{proj}:01J:keys')
  expect(keys.records('01J', 'model')).toBe('hg:{proj}:01J:models')
})

test('all keys of a prefix are in one slot of a cluster', () => {
  const keys = redisKeys('team-a')
  for (const name of [keys.meta, keys.log, keys.pods, keys.acks, keys.records('e', 'key')]) expect(name).toMatch(/^team-a:\{proj\}:/)
})
