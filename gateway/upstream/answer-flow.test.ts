import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { LoopShare } from '#platform/loop-share.ts'
import { AnswerFlow } from './answer-flow.ts'

const LARGE = Buffer.alloc(65_536)
let clock: ManualClock
let loop: LoopShare

beforeEach(() => {
  clock = new ManualClock()
  loop = new LoopShare(clock, () => 0)
})

/** A flow whose source notes whether it may write. */
function flowOf(isStream = true): { flow: AnswerFlow; isPaused: () => boolean; relayed: Buffer[] } {
  let isPaused = false
  const relayed: Buffer[] = []
  const flow = new AnswerFlow(loop, isStream, (chunk) => relayed.push(chunk))
  flow.source = { pause: () => (isPaused = true), resume: () => (isPaused = false) }
  return { flow, isPaused: () => isPaused, relayed }
}

/** So much that the next large chunk has to wait. */
function fillLoop(): void {
  while (!loop.spend(LARGE.length, 0));
}

describe('a backend', () => {
  test('of a stream waits for its turn after large chunks, and not after the small ones of a model', async () => {
    const { flow, isPaused } = flowOf()
    for (let chunk = 0; chunk < 1_000; chunk++) flow.take(LARGE.subarray(0, 300))
    expect(isPaused()).toBe(false)
    for (let chunk = 0; chunk < 8; chunk++) flow.take(LARGE)
    expect(isPaused()).toBe(true)
    await clock.advance(50)
    expect(isPaused()).toBe(false)
  })

  test('of a stream meets a busy loop: its large chunk is relayed in its turn, small ones at once', async () => {
    fillLoop()
    const [fast, slow] = [flowOf(), flowOf()]
    fast.flow.take(LARGE)
    slow.flow.take(LARGE.subarray(0, 300))
    expect([fast.relayed.length, fast.isPaused(), slow.relayed.length, slow.isPaused()]).toEqual([0, true, 1, false])
    await clock.advance(50)
    expect([fast.relayed.length, fast.isPaused()]).toEqual([1, false])
  })

  test('that continues despite a pause, or ends, is relayed whole and in order', () => {
    fillLoop()
    const { flow, relayed } = flowOf()
    const chunks = [LARGE, Buffer.from('small'), Buffer.from('last')]
    for (const chunk of chunks) flow.take(chunk)
    expect(relayed).toEqual([])
    flow.flush()
    expect(relayed).toEqual(chunks)
  })

  test('whose answer was ended by a waiting chunk has the later chunks dropped', () => {
    fillLoop()
    const relayed: Buffer[] = []
    const flow: AnswerFlow = new AnswerFlow(loop, true, (chunk) => {
      relayed.push(chunk)
      flow.close()
    })
    for (const chunk of [LARGE, Buffer.from('after the end')]) flow.take(chunk)
    flow.flush()
    expect(relayed).toEqual([LARGE])
  })

  test('of a plain answer never waits for a turn: its client needs all of the answer', () => {
    const { flow, isPaused } = flowOf(false)
    for (let chunk = 0; chunk < 1_000; chunk++) flow.take(LARGE)
    expect(isPaused()).toBe(false)
  })

  test('whose answer has ended does not wait, and takes no turn of others', async () => {
    const over = Array.from({ length: 100 }, () => flowOf())
    const live = flowOf()
    for (const { flow } of [...over, live]) for (let chunk = 0; chunk < 8; chunk++) flow.take(LARGE)
    for (const { flow } of over) flow.close()
    expect(over.some(({ isPaused }) => isPaused())).toBe(false)
    for (const { flow } of over) flow.take(LARGE)
    expect(over.some(({ isPaused }) => isPaused())).toBe(false)
    await clock.advance(100)
    expect(live.isPaused(), 'the first turn is that of the live one').toBe(false)
  })

  test('that waits for its turn is not silent: the tick reports the wait, and no time-out counts against its server', async () => {
    const { flow, isPaused } = flowOf()
    for (let chunk = 0; chunk < 8; chunk++) flow.take(LARGE)
    expect([isPaused(), flow.onTick(), isPaused()]).toEqual([true, true, true])
    await clock.advance(100)
    expect([isPaused(), flow.onTick()]).toEqual([false, false])
  })

  test('that waits for several reasons continues when the last of them has ended', async () => {
    const { flow, isPaused } = flowOf()
    flow.hold('Client')
    flow.hold('Client')
    for (let bytes = 0; bytes < 2 ** 20; bytes += LARGE.length) flow.take(LARGE)
    await clock.advance(1_000)
    expect([flow.release('Client'), isPaused()]).toEqual([true, true])
    expect([flow.onTick(), isPaused()]).toEqual([true, true])
    await clock.advance(200)
    expect([isPaused(), flow.onTick(), flow.release('Client')]).toEqual([false, false, false])
  })

  test('that ran ahead of the clock continues in its own turn, not with all others in the same tick', async () => {
    loop = new LoopShare(clock, () => clock.monotonic()) // without other work
    const streams = Array.from({ length: 50 }, () => flowOf())
    for (const { flow } of streams) for (let bytes = 0; bytes < 2 ** 20; bytes += LARGE.length) flow.take(LARGE)
    for (let ms = 0; ms < 1_000; ms++) await clock.advance(1) // the turns of the loop are over; the clock alone holds them
    for (const { flow } of streams) flow.onTick()
    expect(streams.filter(({ isPaused }) => !isPaused())).toHaveLength(0)
    for (let ms = 0; ms < 100; ms++) {
      await clock.advance(1)
      expect(streams.filter(({ isPaused }) => !isPaused()).length).toBeLessThanOrEqual(ms + 1)
    }
    expect(streams.filter(({ isPaused }) => !isPaused())).toHaveLength(50)
  })
})
