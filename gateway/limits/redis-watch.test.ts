import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { RedisWatch } from './redis-watch.ts'

let clock: ManualClock
let lines: string[]
let pods: number
let policy: string
let isAway: boolean
let asked: number[]
let watch: RedisWatch

const redis = {
  time: async () => ['1000', '999999'] as [string, string],
  zcount: async (_key: string, since: number) => {
    asked.push(since)
    return pods
  },
  info: async () => `maxmemory_policy:${policy}\r\n`,
}

beforeEach(() => {
  ;[clock, lines, pods, policy, isAway, asked] = [new ManualClock(0), [], 3, 'noeviction', false, []]
  const line = (...args: unknown[]): void => void lines.push(args.map(String).join(' '))
  const run = async <T>(commands: (client: never) => Promise<T>): Promise<T> => {
    if (isAway) throw new Error('away')
    return await commands(redis as never)
  }
  watch = new RedisWatch({
    run,
    pods: 'pods',
    clock,
    log: { debug: line, info: line, warn: line, error: line },
    maxReplicas: 20,
    onAnswer: () => undefined,
  })
})

describe('the pods that share limits', () => {
  test('are counted as the maximum until Redis has answered', async () => {
    isAway = true
    watch.start()
    await clock.advance(3_000)
    expect(watch.live).toBe(20)
    isAway = false
    await clock.advance(1_000)
    expect(watch.live).toBe(3)
  })

  test('are the pods with a heartbeat in the last 5 s by the clock of Redis', async () => {
    watch.start()
    await clock.advance(0)
    expect(asked).toEqual([995_000])
  })

  test('stay known while Redis is away, and just after a Redis has lost its data', async () => {
    watch.start()
    await clock.advance(1_000)
    isAway = true
    await clock.advance(60_000)
    expect(watch.live).toBe(3)
    isAway = false
    pods = 0
    await clock.advance(2_000)
    expect(watch.live).toBe(3)
    await clock.advance(6_000)
    expect(watch.live, 'at least this one').toBe(1)
  })

  test('are not counted after the end', async () => {
    watch.start()
    await clock.advance(0)
    watch.stop()
    await clock.advance(60_000)
    expect(asked).toHaveLength(1)
  })
})

test('a change to an evicting policy while the pod runs is logged with its remedy, and so is the change back', async () => {
  watch.start()
  await clock.advance(10_000)
  expect([watch.isEvicting, lines]).toEqual([false, []])
  policy = 'allkeys-lru'
  await clock.advance(30_000)
  expect(watch.isEvicting).toBe(true)
  expect(lines.join()).toMatch(/maxmemory-policy allkeys-lru.*set "maxmemory-policy noeviction" there/)
  policy = 'noeviction'
  await clock.advance(30_000)
  expect(watch.isEvicting).toBe(false)
  expect(lines.at(-1)).toMatch(/works again/)
})
