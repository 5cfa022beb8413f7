import type { Clock } from '../process/clock.ts'
import { SlotList, type Slotted } from './slot-list.ts'

/** Something that can be ended in order before it is done. */
export interface Interruptible extends Slotted {
  interrupt(): void
}

/** Time for the last frames to leave this process after the deadline, ms; a client that does not read must not hold the shutdown. */
const FLUSH_MS = 1_000

/** The requests whose answers are not wholly sent, for a shutdown. */
export class ActiveRequests {
  readonly #requests = new SlotList<Interruptible>()
  #whenIdle: (() => void) | undefined

  add(request: Interruptible): void {
    this.#requests.add(request)
  }

  delete(request: Interruptible): void {
    this.#requests.delete(request)
    if (this.#requests.size === 0) this.#whenIdle?.()
  }

  /**
   * Lets the requests end by themselves for `graceMs`, then interrupts those that are left: streams end with an error frame.
   * New ones must not come any more; the app refuses them.
   */
  async drain(graceMs: number, clock: Clock): Promise<void> {
    await this.#idle(graceMs, clock)
    this.#requests.forEach((request) => request.interrupt())
    await this.#idle(FLUSH_MS, clock)
  }

  /** Waits until nothing is left, at most so long. */
  async #idle(waitMs: number, clock: Clock): Promise<void> {
    if (this.#requests.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#whenIdle = resolve
    const cancel = clock.after(waitMs, resolve)
    await promise
    cancel()
  }
}
