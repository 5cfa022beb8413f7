import type { Flow } from './body-decoder.ts'
import { LARGE_CHUNK, type LoopShare, type Waiting } from '../process/loop-share.ts'

/**
 * Most bytes of one stream within a tick. Models write a hundredth of that in a second; a server that writes as fast as it can would take the
 * event loop from all other calls.
 */
const MAX_STREAM_BYTES_PER_TICK = 2 ** 20

/** Why a backend has to wait: its client takes nothing, its stream runs ahead of the clock, or the event loop has other work. Bits. */
const HOLDS = { Client: 1, Clock: 2, Loop: 4 } as const
type Hold = keyof typeof HOLDS

/** Whether the backend of one answer may go on writing. */
export class AnswerFlow implements Waiting {
  source: Flow | undefined = undefined
  readonly #loop: LoopShare
  readonly #isStream: boolean
  readonly #relay: (chunk: Buffer) => void
  #holds = 0
  #isClosed = false
  /** Of a stream, since the last tick. */
  #bytes = 0
  /** Came while the loop had other work; the backend waits, so there is hardly ever a second one. */
  #late: Buffer[] = []

  /** @param relay takes each chunk in the order of the backend */
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

  /** Relays what waits for its turn: the backend has ended. */
  flush(): void {
    for (const chunk of this.#late.splice(0)) this.#work(chunk, false)
  }

  /** The backend waits until `release` was called for each reason. */
  hold(reason: Hold): void {
    if (this.#isClosed) return
    if (this.#holds === 0) this.source?.pause()
    this.#holds |= HOLDS[reason]
  }

  /** @returns whether the backend had to wait for this reason */
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

  /** Nobody waits for the answer any more: what is left of it only has to end. */
  close(): void {
    this.#isClosed = true
    this.#late = []
    if (this.#holds === 0) return
    this.#holds = 0
    this.source?.resume()
  }

  /** @returns whether the gateway makes or made the backend wait: its silence does not count then */
  onTick(): boolean {
    const hadToWait = (this.#holds & (HOLDS.Clock | HOLDS.Loop)) !== 0
    this.#bytes = 0
    if ((this.#holds & HOLDS.Clock) !== 0) this.#waitForTurn() // hundreds of streams that go on in the same tick would fill a turn of the loop
    this.release('Clock')
    return hadToWait
  }

  /** @param counts whether the loop accounts for the time */
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
