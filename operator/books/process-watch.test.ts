import { beforeEach, describe, expect, test } from 'vitest'
import type { LiveProcess } from '../projection/store.ts'
import { ProcessWatch } from './process-watch.ts'

const MINUTE = 60_000
const live = (process: string): LiveProcess => ({ process, pod: process.split('/')[0] ?? '', acknowledgement: undefined })

describe('a gateway process', () => {
  let watch: ProcessWatch
  const seen = (nowMs: number, processes: readonly string[], serving: readonly string[] = []): boolean =>
    watch.observe(processes.map(live), new Set(serving), nowMs)

  beforeEach(() => {
    watch = new ProcessWatch()
    seen(0, ['pod-a/1', 'pod-b/2'], ['pod-a', 'pod-b'])
  })

  test('counts as dead half a minute after its last heartbeat if its pod no longer serves, and is reported once', () => {
    expect(seen(29_000, ['pod-b/2'], ['pod-b'])).toBe(false)
    expect(seen(30_000, ['pod-b/2'], ['pod-b'])).toBe(true)
    expect(seen(31_000, ['pod-b/2'], ['pod-b'])).toBe(false)
    expect([watch.isDead('1', 31_000), watch.isDead('pod-a/1', 31_000), watch.isDead('2', 31_000)]).toEqual([true, true, false])
  })

  test('counts as dead only after an hour if its pod serves, because it may only be cut off', () => {
    expect(seen(59 * MINUTE, ['pod-b/2'], ['pod-a', 'pod-b'])).toBe(false)
    expect(watch.isDead('1', 59 * MINUTE)).toBe(false)
    expect(seen(60 * MINUTE, ['pod-b/2'], ['pod-a', 'pod-b'])).toBe(true)
  })

  test('counts as replaced if its pod has a younger process', () => {
    seen(40_000, ['pod-a/9', 'pod-b/2'], ['pod-a', 'pod-b'])
    expect([watch.isDead('1', 40_000), watch.isDead('9', 40_000)]).toEqual([true, false])
  })

  test('that sends a heartbeat again is alive', () => {
    seen(40_000, [])
    expect(watch.isDead('1', 40_000)).toBe(true)
    seen(41_000, ['pod-a/1'])
    expect(watch.isDead('1', 41_000)).toBe(false)
  })

  test('without any heartbeat has two minutes, as after a start of the operator', () => {
    watch.met('unknown', 0)
    seen(119_000, [])
    expect(watch.isDead('unknown', 119_000)).toBe(false)
    expect(seen(120_000, [])).toBe(true)
    expect(watch.isDead('unknown', 120_000)).toBe(true)
  })

  test('cannot return after two hours, and never counts so while it lives', () => {
    for (let nowMs = 0; nowMs <= 121 * MINUTE; nowMs += MINUTE) seen(nowMs, ['pod-b/2'])
    expect([
      watch.cannotReturn('1', 121 * MINUTE),
      watch.cannotReturn('2', 121 * MINUTE),
      watch.cannotReturn('never met', 121 * MINUTE),
    ]).toEqual([true, false, false])
  })

  test('can return for as long as its pod serves without another process: a report whose answer it does not know would count twice', () => {
    seen(180 * MINUTE, ['pod-b/2'], ['pod-a', 'pod-b'])
    expect(watch.cannotReturn('1', 180 * MINUTE)).toBe(false)
    seen(181 * MINUTE, ['pod-a/9', 'pod-b/2'], ['pod-a', 'pod-b'])
    expect(watch.cannotReturn('1', 181 * MINUTE)).toBe(true)
  })
})
