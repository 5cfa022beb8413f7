import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * Well outside normal operation: for most of a second the event loop is late by 200 ms or more, or more streams are open than we size
 * memory for. A pod that shares its cores may be late by tens of milliseconds at any time, so a lower bound would refuse requests that the
 * pod can serve (decision 20).
 */
const LOAD_LIMITS = {
  /** Running model calls of known keys. A stream counts for as long as it runs. */
  maxCalls: 20_000,
  /** Median delay of the event loop within a window, ms. A single stall, however long, does not reach it. */
  maxLoopDelayMs: 200,
  windowMs: 1_000,
}

/** Source of the event loop's delay, nanoseconds. */
type LoopDelay = Pick<ReturnType<typeof monitorEventLoopDelay>, 'percentile' | 'reset'>

const SAMPLE_EVERY_MS = 20 // Node's default of 10 costs twice the CPU

/** Sheds load (row 25) before all clients have to wait: a refusal at once costs a client less than a time-out. */
export class LoadGuard {
  readonly #limits: typeof LOAD_LIMITS
  readonly #calls: () => number
  readonly #delay: LoopDelay
  readonly #timer: NodeJS.Timeout
  #isSlow = false

  /** @param calls running model calls of known keys */
  constructor(calls: () => number, limits = LOAD_LIMITS, delay: LoopDelay = startedHistogram()) {
    this.#limits = limits
    this.#calls = calls
    this.#delay = delay
    this.#timer = setInterval(() => this.look(), limits.windowMs).unref()
  }

  /** Read at the start of a call, before the call counts. */
  get isOverloaded(): boolean {
    return this.#isSlow || this.#calls() >= this.#limits.maxCalls
  }

  /** Samples the event-loop delay of the last window and resets it. Called by a timer. */
  look(): void {
    this.#isSlow = this.#delay.percentile(50) / 1e6 > this.#limits.maxLoopDelayMs + SAMPLE_EVERY_MS // each sample includes the interval itself
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
