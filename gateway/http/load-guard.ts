import { monitorEventLoopDelay } from 'node:perf_hooks'

/** When a process takes no more requests. */
export interface LoadLimits {
  /** Model calls of known keys under way; streams count as long as they run. */
  readonly maxCalls: number
  /** Median of the event loop's delay within one window: a single stall, however long, does not count. */
  readonly maxLoopDelayMs: number
  /** Length of a window. */
  readonly windowMs: number
}

/** Where the delay of the event loop is read from; Node's histogram fits. */
export interface LoopDelay {
  /** Nanoseconds. */
  percentile(percentile: number): number
  reset(): void
}

const SAMPLE_EVERY_MS = 20 // Node's default of 10 costs twice the CPU

/**
 * Sheds load (row 25) before everybody waits: a request refused at once is cheaper for its client than one that times out.
 * Closed by `stop`, which ends its timer.
 */
export class LoadGuard {
  readonly #limits: LoadLimits
  readonly #calls: () => number
  readonly #delay: LoopDelay
  readonly #timer: NodeJS.Timeout
  #isSlow = false

  /** @param calls model calls of known keys under way */
  constructor(limits: LoadLimits, calls: () => number, delay: LoopDelay = startedHistogram()) {
    this.#limits = limits
    this.#calls = calls
    this.#delay = delay
    this.#timer = setInterval(() => this.look(), limits.windowMs).unref()
  }

  /** Asked when a call begins, which does not count yet. */
  get isOverloaded(): boolean {
    return this.#isSlow || this.#calls() >= this.#limits.maxCalls
  }

  /** Samples the event-loop delay of the last window and resets it. Called by a timer. */
  look(): void {
    this.#isSlow = this.#delay.percentile(50) / 1e6 > this.#limits.maxLoopDelayMs + SAMPLE_EVERY_MS // the interval itself is part of a sample
    this.#delay.reset()
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

function startedHistogram(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_EVERY_MS })
  histogram.enable()
  return histogram
}
