import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { ShownUsage } from './shown-usage.ts'
import type { SubjectUsage } from '../books/subject-ledger.ts'
import type { Weight } from './usage-status.ts'

class Scene {
  readonly clock = new ManualClock()
  readonly written: string[] = []
  weight: Weight | undefined = { kind: 'Changed', size: 1 }
  readonly usage = new ShownUsage({ clock: this.clock, weigh: () => this.weight, enqueue: (uid) => void this.written.push(uid) })

  read(uid: string, size = 1, kind: Weight['kind'] = 'Changed'): SubjectUsage {
    this.weight = { kind, size }
    const usage: SubjectUsage = { budgets: [], lastUsedMs: this.clock.now() }
    this.usage.read(uid, usage)
    return usage
  }

  async passed(seconds: number): Promise<readonly string[]> {
    await this.clock.advance(seconds * 1_000)
    return this.written.splice(0)
  }
}

const uids = (count: number): string[] => Array.from({ length: count }, (_, index) => `uid-${index}`)

describe('statuses about use', () => {
  test('show the newest reading within a second, and the former reading until then', async () => {
    const scene = new Scene()
    scene.read('a')
    const newest = scene.read('a')
    expect(scene.usage.shown('a')).toBeUndefined()
    expect(await scene.passed(1)).toEqual(['a'])
    expect(scene.usage.shown('a')).toBe(newest)
  })

  test('of one key are a minute apart, even with more readings', async () => {
    const scene = new Scene()
    const at: number[] = []
    for (let second = 1; second <= 180; second += 1) {
      scene.read('a')
      if ((await scene.passed(1)).length > 0) at.push(second)
    }
    expect(at).toEqual([1, 61, 121])
  })

  test('of all keys together are ten a second, the largest change first', async () => {
    const scene = new Scene()
    for (const [index, uid] of uids(25).entries()) scene.read(uid, index)
    const turns = [await scene.passed(1), await scene.passed(1), await scene.passed(1), await scene.passed(10)]
    expect(turns.map((turn) => turn.length)).toEqual([10, 10, 5, 0])
    expect(turns[0]).toEqual(uids(25).slice(15).toReversed())
  })

  test('of small changes come too while larger ones keep coming, half of each turn', async () => {
    const scene = new Scene()
    for (const uid of uids(20)) scene.read(uid, 1)
    const shown = new Set<string>()
    for (let second = 0; second < 70; second += 1) {
      for (let index = 0; index < 10; index += 1) scene.read(`busy-${second}-${index}`, 50)
      for (const uid of await scene.passed(1)) shown.add(uid)
    }
    expect(uids(20).filter((uid) => !shown.has(uid))).toEqual([])
  })

  test('of a hundred thousand keys all come within two hours, while all of them are in use', async () => {
    const scene = new Scene()
    const all = uids(100_000)
    for (const uid of all) scene.read(uid, uid.length)
    const shown = new Set<string>()
    for (let second = 0; second < 7_200; second += 1) {
      const turn = await scene.passed(1)
      expect(turn.length).toBeLessThanOrEqual(28)
      for (const uid of turn) scene.read(uid, 99)
      for (const uid of turn) shown.add(uid)
    }
    expect(shown.size).toBe(all.length)
  }, 60_000)

  test('are written at once when a budget is used up', async () => {
    const scene = new Scene()
    for (const uid of uids(100)) scene.read(uid)
    scene.read('a')
    await scene.passed(15)
    const full = scene.read('a', 9, 'Exhausted')
    expect([scene.written, scene.usage.shown('a')]).toEqual([['a'], full])
  })

  test('are not written for too small a change, even if an earlier reading had a larger one', async () => {
    const scene = new Scene()
    scene.read('a')
    scene.read('a', 0, 'None')
    expect(await scene.passed(100)).toEqual([])
  })

  test('are not written for a deleted key, nor after a stop', async () => {
    const scene = new Scene()
    scene.weight = undefined
    scene.usage.read('a', { budgets: [], lastUsedMs: undefined })
    scene.read('b')
    scene.usage.forget('b')
    scene.read('c')
    scene.usage.stop()
    expect(await scene.passed(100)).toEqual([])
  })

  test('need no timer while no key is used', async () => {
    const scene = new Scene()
    scene.read('a')
    await scene.passed(1)
    expect(scene.clock.pending).toBe(0)
  })
})
