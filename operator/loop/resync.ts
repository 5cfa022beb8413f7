import { sleep, type Clock } from '#platform/clock.ts'
import { refOf, type Informer } from '#kube/port.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'

export interface ResyncOptions {
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
  /** Every object of these is reconciled once per interval. */
  readonly kinds: ReadonlyArray<{ readonly kind: string; readonly informer: Pick<Informer, 'list'> }>
  readonly enqueue: (item: Item, level: Level) => void
  /** Default 10 minutes. */
  readonly intervalMs?: number
}

const INTERVAL_MS = 600_000
const SPREAD = 0.1
/** A round is cut into this many steps. */
const STEPS = 600

/** Reconciles every known object every 10 minutes ±10 % at background level, spread evenly: 100,000 at once would be too many reads. */
export class Resync {
  readonly #options: ResyncOptions
  #stopped = new AbortController()

  constructor(options: ResyncOptions) {
    this.#options = options
  }

  /** The first object follows after one step of the interval. */
  start(): void {
    this.stop()
    this.#stopped = new AbortController()
    void this.#run(this.#stopped.signal)
  }

  stop(): void {
    this.#stopped.abort()
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { random, intervalMs = INTERVAL_MS } = this.#options
    while (!signal.aborted) await this.#round(intervalMs * (1 - SPREAD + random() * 2 * SPREAD), signal)
  }

  async #round(lengthMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const items = this.#items()
    const startedAtMs = clock.monotonic()
    for (let step = 0; step < STEPS; step += 1) {
      const dueAtMs = startedAtMs + (lengthMs * (step + 1)) / STEPS // not from the last step on: late timers would add up
      await sleep(clock, Math.max(0, dueAtMs - clock.monotonic()), signal)
      if (signal.aborted) return
      const [from, to] = [step, step + 1].map((each) => Math.floor((items.length * each) / STEPS))
      for (const item of items.slice(from, to)) this.#options.enqueue(item, 'background')
    }
  }

  #items(): Item[] {
    return this.#options.kinds.flatMap(({ kind, informer }) =>
      Array.from(informer.list(), (object): Item => ({ kind, ref: refOf(object) })),
    )
  }
}
