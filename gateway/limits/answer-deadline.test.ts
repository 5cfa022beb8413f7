import { expect, test } from 'vitest'
import type { Clock } from '#platform/clock.ts'
import { answerDeadline } from './answer-deadline.ts'

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

test('after a long turn that delayed the timer, the answers that arrived in that turn are read first', () => {
  const clock = new StallingClock()
  let late = 0
  const cancel = answerDeadline(clock, 50, () => (late += 1))
  clock.fireAt(130)
  expect([late, clock.delays]).toEqual([0, [47, 1]])
  cancel() // the answer was there
  clock.fireAt(140)
  expect(late).toBe(0)
})

test('an answer that has still not arrived after three more turns is late', () => {
  const clock = new StallingClock()
  let late = 0
  answerDeadline(clock, 50, () => (late += 1))
  for (const ms of [47, 48, 49]) clock.fireAt(ms)
  expect(late).toBe(0)
  clock.fireAt(50)
  expect([late, clock.timers.length]).toEqual([1, 0])
})
