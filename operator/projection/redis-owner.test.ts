import type { Redis } from 'ioredis'
import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { ForeignStore } from './foreign-store.ts'
import { OwnRedis } from './redis-owner.ts'

const CHECK_MS = 1_000

describe('the connection of all writes to Redis', () => {
  let clock: ManualClock
  let installation: string
  let calls: string[]
  let reconnect: () => void

  beforeEach(() => {
    clock = new ManualClock()
    installation = 'ours'
    calls = []
  })

  function open({ takesOver = false } = {}): OwnRedis {
    const client = {
      on: (event: string, listener: () => void) => void (event === 'close' && (reconnect = listener)),
      hgetall: () => {
        calls.push('read')
        return Promise.resolve({ schema: '1', epoch: 'e', rev: '1', fence: '1', installation })
      },
      set: () => Promise.resolve(calls.push('write')),
    } as unknown as Redis // the calls that are used here
    return new OwnRedis({ redis: { client, run: (commands) => commands(client) }, keyPrefix: 'hg', clock, takesOver })
  }

  const write = (redis: OwnRedis): Promise<unknown> => redis.run((client) => client.set('a', 'b'))

  test('runs no command before the identity of the installation is known', async () => {
    const redis = open()
    await expect(write(redis)).rejects.toThrow('was not read yet')
    redis.belongsTo('ours')
    await write(redis)
    expect(calls).toEqual(['read', 'write'])
  })

  test('only reads from the Redis of another installation, and works by itself once Redis is its own', async () => {
    const redis = open()
    redis.belongsTo('ours')
    installation = 'theirs'
    await expect(write(redis)).rejects.toThrow(ForeignStore)
    await expect(write(redis)).rejects.toThrow('another installation (theirs)')
    expect(calls).toEqual(['read', 'read'])
    installation = 'ours'
    await write(redis)
    expect(calls.at(-1)).toBe('write')
  })

  test('reads the owner again after a reconnect, which may lead to another Redis, and each second', async () => {
    const redis = open()
    redis.belongsTo('ours')
    await write(redis)
    await write(redis)
    expect(calls).toEqual(['read', 'write', 'write'])
    installation = 'theirs'
    reconnect()
    await expect(write(redis)).rejects.toThrow(ForeignStore)
    installation = 'ours'
    await write(redis)
    installation = 'theirs'
    await clock.advance(CHECK_MS)
    await expect(write(redis)).rejects.toThrow(ForeignStore)
  })

  test('writes to the Redis of another installation if the administrator takes it over', async () => {
    const redis = open({ takesOver: true })
    redis.belongsTo('ours')
    installation = 'theirs'
    await write(redis)
    expect(calls).toEqual(['read', 'write'])
  })
})
