import { expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { Calm } from './calm.ts'

async function waiting(calm: Calm, stop = new AbortController().signal): Promise<{ done: boolean }> {
  const state = { done: false }
  void calm.wait(stop).then(() => (state.done = true))
  await settle()
  return state
}

test('with no change for a while nobody waits', async () => {
  expect((await waiting(new Calm(new ManualClock()))).done).toBe(true)
})

test('while changes come in the telling waits for their end, and a second at most', async () => {
  const clock = new ManualClock()
  const calm = new Calm(clock)
  calm.disturbed()
  const short = await waiting(calm)
  await clock.advance(50)
  expect(short.done).toBe(true)
  calm.disturbed()
  const long = await waiting(calm)
  for (let i = 0; i < 24; i++) {
    await clock.advance(40)
    calm.disturbed()
  }
  expect(long.done).toBe(false)
  await clock.advance(40)
  expect(long.done).toBe(true)
})

test('what is done for a change goes before the telling, for a second at most', async () => {
  const clock = new ManualClock()
  const calm = new Calm(clock)
  const { promise, resolve } = Promise.withResolvers<string>()
  const result = calm.act(() => promise)
  const first = await waiting(calm)
  await clock.advance(999)
  expect(first.done).toBe(false)
  await clock.advance(1)
  expect(first.done).toBe(true)

  const second = await waiting(calm)
  resolve('written')
  expect(await result).toBe('written')
  await clock.advance(49)
  expect(second.done).toBe(false)
  await clock.advance(1)
  expect(second.done).toBe(true)
})

test('what fails is over as well', async () => {
  const clock = new ManualClock()
  const calm = new Calm(clock)
  await expect(calm.act(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  const state = await waiting(calm)
  await clock.advance(50)
  expect(state.done).toBe(true)
})

test('a wait ends when its object changes', async () => {
  const calm = new Calm(new ManualClock())
  calm.disturbed()
  const stop = new AbortController()
  const state = await waiting(calm, stop.signal)
  stop.abort()
  await settle()
  expect(state.done).toBe(true)
})

test('six tell at once; one whose object changes while it waits for its turn tells nothing', async () => {
  const calm = new Calm(new ManualClock())
  const told: number[] = []
  const ends: Array<() => void> = []
  const stops = Array.from({ length: 8 }, () => new AbortController())
  const write = (i: number) => (): Promise<void> => {
    told.push(i)
    return new Promise((resolve) => ends.push(resolve))
  }
  const all = stops.map((stop, i) => calm.tell(stop.signal, write(i)))
  await settle()
  expect(told).toEqual([0, 1, 2, 3, 4, 5])
  stops[6]?.abort()
  ends[0]?.()
  await settle()
  expect(told).toEqual([0, 1, 2, 3, 4, 5, 7])
  for (const end of ends) end()
  await Promise.all(all)
})
