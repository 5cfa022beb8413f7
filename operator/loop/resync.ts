import type { Cancel, Clock } from '../../gateway/shared/clock.ts'
import { refOf, type Informer, type ObjectRef } from '../kube/port.ts'
import type { Priority } from './key-lanes.ts'

/** What `Resync` needs. */
export interface ResyncOptions {
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
  readonly informer: Informer
  readonly enqueue: (ref: ObjectRef, priority: Priority) => void
  /** Default 10 minutes. */
  readonly intervalMs?: number
}

const INTERVAL_MS = 600_000
const SPREAD = 0.1

/** Has every known object looked at again every 10 minutes ±10 %, behind all changes: the net under a missed event. */
export class Resync {
  readonly #options: ResyncOptions
  #cancel: Cancel | undefined

  constructor(options: ResyncOptions) {
    this.#options = options
  }

  /** The first round comes after one interval: a start lists everything anyway. */
  start(): void {
    this.stop()
    const { clock, random, intervalMs = INTERVAL_MS } = this.#options
    this.#cancel = clock.after(intervalMs * (1 - SPREAD + random() * 2 * SPREAD), () => {
      for (const object of this.#options.informer.list()) this.#options.enqueue(refOf(object), 'resync')
      this.start()
    })
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
