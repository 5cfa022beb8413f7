import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { Breaker } from './breaker.ts'

describe('the breaker of a node', () => {
  let clock: ManualClock
  let breaker: Breaker
  let pings: number
  let isUp: boolean
  /** Pings that fail before the others. */
  let failures: number

  beforeEach(() => {
    clock = new ManualClock()
    pings = 0
    isUp = true
    failures = 0
    const ping = async (): Promise<void> => {
      pings += 1
      if (!isUp || failures-- > 0) throw new Error('no answer')
    }
    breaker = new Breaker({ clock, ping, timeoutMs: 50 })
  })

  test('one failure makes it suspect, and a good ping after 100 ms lets calls through again', async () => {
    breaker.failed()
    expect([breaker.state, breaker.allows]).toEqual(['suspect', false])
    await clock.advance(99)
    expect(pings).toBe(0)
    await clock.advance(1)
    expect([breaker.state, breaker.allows]).toEqual(['closed', true])
  })

  test('five failures in 10 s open it, and two good pings a second apart close it', async () => {
    isUp = false
    breaker.failed()
    await clock.advance(2_000)
    expect(breaker.state).toBe('open')
    isUp = true
    await clock.advance(1_000)
    expect(breaker.state).toBe('open')
    await clock.advance(1_000)
    expect(breaker.state).toBe('closed')
  })

  test('a hundred calls that fail at once are one failure', async () => {
    for (let i = 0; i < 100; i += 1) breaker.failed()
    expect(breaker.state).toBe('suspect')
    await clock.advance(100)
    expect(breaker.state).toBe('closed')
  })

  test('failures further apart than 10 s do not add up', async () => {
    for (let i = 0; i < 10; i += 1) {
      breaker.failed()
      await clock.advance(3_000)
    }
    expect(breaker.state).toBe('closed')
  })

  async function answerSlowly(pingsAfter = 1): Promise<void> {
    for (let i = 0; i < 38; i += 1) breaker.answered(1)
    breaker.answered(30)
    breaker.answered(30)
    expect(pings).toBe(0)
    breaker.answered(30)
    await clock.advance(0)
    expect(pings).toBe(pingsAfter)
  }

  test('more than one slow answer in 20 calls and two slow pings open the breaker of a node', async () => {
    isUp = false
    await answerSlowly(2)
    expect(breaker.state).toBe('open')
  })

  test('one slow ping that waited behind a burst of calls is no reason to open', async () => {
    failures = 1
    await answerSlowly(2)
    expect(breaker.state).toBe('closed')
  })

  test('late answers beside a quick ping were delayed by this process, and are no reason to open', async () => {
    await answerSlowly()
    breaker.answered(30)
    await clock.advance(0)
    expect([breaker.state, pings]).toEqual(['closed', 1])
  })

  test('a ping that hangs counts as bad', async () => {
    const hanging = new Breaker({ clock, ping: () => new Promise(() => undefined), timeoutMs: 50 })
    hanging.failed()
    await clock.advance(1_000)
    expect(hanging.state).not.toBe('closed')
  })

  test('a closed breaker leaves no timer behind', async () => {
    isUp = false
    breaker.failed()
    breaker.close()
    await clock.advance(5_000)
    expect([pings, clock.pending]).toEqual([0, 0])
  })
})
