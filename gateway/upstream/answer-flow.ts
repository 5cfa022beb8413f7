import type { Flow } from './body-decoder.ts'
import { LARGE_CHUNK, type LoopShare, type Waiting } from '#platform/loop-share.ts'

/**
 * Maximum number of bytes of one stream per tick. Models write a hundredth of that per second; a server that writes as fast as it can would
 * take the event loop from all other calls (decision 20).
 */
const MAX_STREAM_BYTES_PER_TICK = 2 ** 20

/** Why a backend has to wait, as bits: its client does not read, its stream is ahead of the clock, the event loop is busy. */
const HOLDS = { Client: 1, Clock: 2, Loop: 4 } as const
type Hold = keyof typeof HOLDS

export class AnswerFlow implements Waiting {
  source: Flow | undefined = undefined
  readonly #loop: LoopShare
  readonly #isStream: boolean
  readonly #relay: (chunk: Buffer) => void
  #holds = 0
  #isClosed = false
  #bytes = 0
  /** Chunks that arrived while the loop had other work. The backend waits then, so there is rarely a second one. */
  #late: Buffer[] = []

  /** @param relay receives each chunk in the order of the backend */
  constructor(loop: LoopShare, isStream: boolean, relay: (chunk: Buffer) => void) {
    this.#loop = loop
    this.#isStream = isStream
    this.#relay = relay
  }

  /** Relays a chunk: at once, or in its turn if it is large and the loop has other work. */
  take(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#isStream && this.#bytes >= MAX_STREAM_BYTES_PER_TICK) this.hold('Clock')
    const isLarge = this.#isStream && chunk.length >= LARGE_CHUNK
    if (this.#late.length === 0 && !(isLarge && this.#loop.isBusy)) return this.#work(chunk, isLarge)
    this.#late.push(chunk)
    this.#waitForTurn()
  }

  flush(): void {
    for (const chunk of this.#late.splice(0)) this.#work(chunk, false)
  }

  /** Pauses the backend until `release` was called for each reason. */
  hold(reason: Hold): void {
    if (this.#isClosed) return
    if (this.#holds === 0) this.source?.pause()
    this.#holds |= HOLDS[reason]
  }

  release(reason: Hold): boolean {
    if ((this.#holds & HOLDS[reason]) === 0) return false
    this.#holds &= ~HOLDS[reason]
    if (this.#holds === 0) this.source?.resume()
    return true
  }

  onTurn(): boolean {
    for (const chunk of this.#late.splice(0)) this.#work(chunk, true)
    return this.release('Loop')
  }

  close(): void {
    this.#isClosed = true
    this.#late = []
    if (this.#holds === 0) return
    this.#holds = 0
    this.source?.resume()
  }

  /** @returns whether the gateway pauses or has paused the backend; its silence does not count then */
  onTick(): boolean {
    const hadToWait = (this.#holds & (HOLDS.Clock | HOLDS.Loop)) !== 0
    this.#bytes = 0
    if ((this.#holds & HOLDS.Clock) !== 0) this.#waitForTurn() // hundreds of streams that continue in the same tick would fill a turn of the loop
    this.release('Clock')
    return hadToWait
  }

  /** @param counts whether the loop counts the time */
  #work(chunk: Buffer, counts: boolean): void {
    if (this.#isClosed) return // a chunk before this one has ended the answer
    const beganAt = counts ? performance.now() : 0
    this.#relay(chunk)
    if (counts && this.#loop.spend(chunk.length, performance.now() - beganAt)) this.#waitForTurn()
  }

  #waitForTurn(): void {
    if (this.#isClosed || (this.#holds & HOLDS.Loop) !== 0) return
    this.hold('Loop')
    this.#loop.wait(this)
  }
}
