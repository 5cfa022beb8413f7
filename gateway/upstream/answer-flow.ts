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
  #holds = 0
  #isClosed = false
  /** Of a stream, since the last tick. */
  #bytes = 0

  constructor(loop: LoopShare, isStream: boolean) {
    this.#loop = loop
    this.#isStream = isStream
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

  /** @returns when the work on a chunk began, if its time counts, ms */
  begin(chunk: Buffer): number {
    return this.#isStream && chunk.length >= LARGE_CHUNK ? performance.now() : 0
  }

  /** The work on a chunk is over. @param beganAt what `begin` returned */
  end(chunk: Buffer, beganAt: number): void {
    this.#bytes += chunk.length
    if (this.#isStream && this.#bytes >= MAX_STREAM_BYTES_PER_TICK) this.hold('Clock')
    if (beganAt !== 0 && this.#loop.spend(chunk.length, performance.now() - beganAt)) this.#waitForTurn()
  }

  onTurn(): boolean {
    return this.release('Loop')
  }

  /** Nobody waits for the answer any more: what is left of it only has to end. */
  close(): void {
    this.#isClosed = true
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

  #waitForTurn(): void {
    if (this.#isClosed || (this.#holds & HOLDS.Loop) !== 0) return
    this.hold('Loop')
    this.#loop.wait(this)
  }
}
