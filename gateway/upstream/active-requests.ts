import type { Clock } from '../shared/clock.ts'

/** Something that can be ended in order before it is done. */
export interface Interruptible {
  interrupt(): void
}

/** The requests on their way, for a shutdown. */
export class ActiveRequests {
  readonly #requests = new Set<Interruptible>()
  #whenIdle: (() => void) | undefined

  get size(): number {
    return this.#requests.size
  }

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
    if (this.#requests.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#whenIdle = resolve
    const cancel = clock.after(graceMs, resolve)
    await promise
    cancel()
    for (const request of this.#requests) request.interrupt()
  }
}
