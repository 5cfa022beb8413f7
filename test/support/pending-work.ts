import { createHook } from 'node:async_hooks'

/** A compression in the thread pool takes several jobs, and closes its handle at the end. */
interface CompressionHandle {
  close: () => void
}

/** The stream around a compression hands over its result a turn later. */
const CLEAN_TURNS = 2

/** A turn that only waits for the end of the work does not count as work: two such turns would wait for each other. */
let isOwnTurn = false

/** Finds whether this thread has work left that does not wait for a clock: turns of the event loop, and compression. */
export class PendingWork {
  readonly #immediates = new Set<number>()
  readonly #compressions = new Set<number>()
  readonly #hook = createHook({
    trackPromises: false,
    init: (id, type, _trigger, resource) => {
      if (type === 'Immediate' && !isOwnTurn) this.#immediates.add(id)
      if (type === 'ZLIB') this.#track(id, resource as CompressionHandle)
    },
    after: (id) => void this.#immediates.delete(id),
    destroy: (id) => void this.#immediates.delete(id),
  })

  constructor() {
    this.#hook.enable()
  }

  /** Resolves when nothing can run any more until a clock moves or I/O arrives. */
  async drained(): Promise<void> {
    for (let clean = 0; clean < CLEAN_TURNS; clean = this.#isIdle ? clean + 1 : 0) {
      await this.#turn()
    }
  }

  end(): void {
    this.#hook.disable()
    this.#immediates.clear()
    this.#compressions.clear()
  }

  get #isIdle(): boolean {
    return this.#immediates.size === 0 && this.#compressions.size === 0
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      isOwnTurn = true
      setImmediate(resolve)
      isOwnTurn = false
    })
  }

  #track(id: number, handle: CompressionHandle): void {
    const { close } = handle
    this.#compressions.add(id)
    handle.close = () => {
      this.#compressions.delete(id)
      close.call(handle)
    }
  }
}
