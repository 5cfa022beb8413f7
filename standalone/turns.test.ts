import { describe, expect, it } from 'vitest'
import { apiKeys } from '#api/resources.ts'
import { apiKey } from '../test/support/objects.ts'
import { turnsDuring } from '../test/support/turns-during.ts'
import { ObjectStore } from './object-store.ts'
import { inTurns, makeTurns } from './turns.ts'

/** Keeps the processor busy. */
const work = (ms: number): void => {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

describe('turns', () => {
  it('leave the event loop to others between two parts of long work, also of many that work at once', async () => {
    const turns = makeTurns()
    const done: number[] = []
    const one = async (index: number): Promise<void> => {
      await turns()
      work(4)
      done.push(index)
    }
    const others = await turnsDuring(() => Promise.all(Array.from({ length: 60 }, (_, index) => one(index))))
    expect(done, 'in their order').toEqual(done.toSorted((a, b) => a - b))
    expect(others, '240 ms of work in turns of 10 ms and one part').toBeGreaterThan(10)
    expect(await turnsDuring(async () => await makeTurns()()), 'without work').toBe(0)
  })

  it('are taken by the calls of the operator, so that the reconcile of many keys leaves turns to others', async () => {
    const kube = inTurns(new ObjectStore({ persist: () => work(2) }), makeTurns())
    const keys = Array.from({ length: 100 }, (_, index) => apiKey(`k${index}`))
    expect(await turnsDuring(() => Promise.all(keys.map((key) => kube.create(apiKeys, key))))).toBeGreaterThan(8)
    expect(await kube.list(apiKeys, '')).toHaveLength(100)
  })
})
