import { beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { LoopShare } from './loop-share.ts'

const CHUNK = 65_536
let clock: ManualClock
let loop: LoopShare
let idleMs: number

beforeEach(() => {
  clock = new ManualClock()
  idleMs = 0
  loop = new LoopShare(clock, () => idleMs)
})

/** A peer that sends another chunk whenever it may. */
class Greedy {
  bytes = 0

  send(): void {
    do this.bytes += CHUNK
    while (!loop.spend(CHUNK, 0))
    loop.wait(this)
  }

  onTurn(): boolean {
    this.send()
    return true
  }
}

describe('peers that send as fast as they can', () => {
  test('get a fifth of the time together, and the same each', async () => {
    const peers = Array.from({ length: 20 }, () => new Greedy())
    for (const peer of peers) peer.send()
    for (let ms = 0; ms < 2_000; ms++) await clock.advance(1)
    const mebibytes = peers.map(({ bytes }) => bytes / 2 ** 20)
    const total = mebibytes.reduce((sum, one) => sum + one, 0)
    expect(total).toBeGreaterThan(60) // 2 s at 5 ms per MiB, a fifth of the time: 80
    expect(total).toBeLessThan(90)
    expect(Math.max(...mebibytes) / Math.min(...mebibytes)).toBeLessThan(1.5)
  })

  test('get all of the time while the loop has nothing else to do', async () => {
    const peer = new Greedy()
    peer.send()
    for (let ms = 0; ms < 1_000; ms++) {
      idleMs += 1
      await clock.advance(1)
    }
    expect(peer.bytes / 2 ** 20).toBeGreaterThan(180) // at 5 ms per MiB: 200
  })

  test('wait the longer, the more work their chunks were', async () => {
    let turns = 0
    expect(loop.spend(CHUNK, 20)).toBe(true)
    loop.wait({ onTurn: () => (turns += 1) > 0 })
    for (let ms = 0; ms < 80; ms++) await clock.advance(1)
    expect(turns).toBe(0)
    for (let ms = 0; ms < 20; ms++) await clock.advance(1)
    expect(turns).toBe(1)
  })

  test('come and go, and starve no waiting work', async () => {
    let turns = 0
    while (!loop.spend(CHUNK, 0));
    loop.wait({ onTurn: () => (turns += 1) > 0 })
    for (let ms = 0; ms < 100; ms++) {
      for (let peer = 0; peer < 100; peer++) loop.spend(CHUNK, 1)
      await clock.advance(1)
    }
    expect(turns).toBe(1)
  })

  test('that rest may send at once again', async () => {
    while (!loop.spend(CHUNK, 0));
    await clock.advance(100)
    expect(loop.spend(CHUNK, 0)).toBe(false)
  })
})
