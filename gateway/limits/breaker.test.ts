import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { Clock } from '#platform/clock.ts'
import { answerDeadline, Breaker } from './breaker.ts'

describe('the breaker of the store', () => {
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

  test('more than one slow answer in 20 calls and two slow pings open the breaker of the store', async () => {
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

/** The timers of a blocked event loop: `fire` runs the next timer, however late. */
class StallingClock implements Clock {
  nowMs = 0
  timers: Array<() => void> = []
  readonly delays: number[] = []

  now = (): number => this.nowMs
  monotonic = (): number => this.nowMs

  after(delayMs: number, callback: () => void): () => void {
    this.delays.push(delayMs)
    this.timers.push(callback)
    return () => void (this.timers = this.timers.filter((other) => other !== callback))
  }

  fireAt(nowMs: number): void {
    this.nowMs = nowMs
    for (const timer of this.timers.splice(0)) timer()
  }
}

test('time in which the process could not read answers counts as one tenth of the wait, however long it was', () => {
  const clock = new StallingClock()
  let late = 0
  const cancel = answerDeadline(clock, 503, () => (late += 1))
  for (let stop = 1; stop <= 9; stop += 1) clock.fireAt(stop * 10_000)
  expect([late, clock.delays]).toEqual([0, Array.from({ length: 10 }, () => 50)])
  cancel() // the answer was there
  clock.fireAt(100_000)
  expect(late).toBe(0)
})

test('an answer that has still not arrived after three more turns is late', () => {
  const clock = new StallingClock()
  let late = 0
  answerDeadline(clock, 503, () => (late += 1))
  for (let ms = 50; ms <= 500; ms += 50) clock.fireAt(ms)
  for (const ms of [501, 502]) clock.fireAt(ms)
  expect([late, clock.delays.slice(-3)]).toEqual([0, [1, 1, 1]])
  clock.fireAt(503)
  expect([late, clock.timers.length]).toEqual([1, 0])
})
