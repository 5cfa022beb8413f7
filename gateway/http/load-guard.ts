import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'

/** Running model calls of known keys at which a process is full. A stream counts for as long as it runs. */
export const MAX_CALLS = 20_000
/** Sockets of a call: one to the client, one to the model server. */
const FILES_PER_CALL = 2
/** Files and sockets besides those of calls: idle connections, Redis, the mounted folder. */
const OTHER_FILES = 1_000
/** Fewer calls than this, and a pod serves nobody. */
const MIN_CALLS = 100

/**
 * The calls that the limit of open files allows, at most `MAX_CALLS`. Without this bound the process would run out of sockets first, and
 * a call would end in a failed connection instead of row 25.
 * @param log hears of a limit that allows fewer; a gateway on the machine of a developer needs no such line
 * @throws Misconfigured if there are too few
 */
export function callsWithin(openFiles: number, log?: Log): number {
  const calls = Math.floor((openFiles - OTHER_FILES) / FILES_PER_CALL)
  if (calls >= MAX_CALLS) return MAX_CALLS
  const wanted = MAX_CALLS * FILES_PER_CALL + OTHER_FILES
  if (calls < MIN_CALLS) {
    throw new Misconfigured(`the limit of open files is ${openFiles}, too few for calls; raise it (ulimit -n) to ${wanted}`)
  }
  log?.warn({ openFiles, calls, wanted }, 'the limit of open files bounds the calls of this process; raise it (ulimit -n) for more')
  return calls
}

/**
 * Well outside normal operation: for most of a second the event loop is late by 200 ms or more, or more streams are open than we size
 * memory for. A pod that shares its cores may be late by tens of milliseconds at any time, so a lower bound would refuse requests that the
 * pod can serve (decision 20).
 */
const LOAD_LIMITS = {
  maxCalls: MAX_CALLS,
  /** Median delay of the event loop within a window, ms. A single stall, however long, does not reach it. */
  maxLoopDelayMs: 200,
  windowMs: 1_000,
}

/** Source of the event loop's delay, nanoseconds. */
type LoopDelay = Pick<ReturnType<typeof monitorEventLoopDelay>, 'percentile' | 'reset'>

const SAMPLE_EVERY_MS = 20 // Node's default of 10 costs twice the CPU

/**
 * Sheds load (row 25) before all clients have to wait: a refusal at once costs a client less than a time-out. A full pod stays Ready. If it
 * left the Service, its share would fill the next pod, and after the last one clients would get refused connections instead of an answer
 * that says when to ask again. That answer closes its connection, so that the next try may reach another pod.
 */
export class LoadGuard {
  readonly #limits: typeof LOAD_LIMITS
  readonly #calls: () => number
  readonly #delay: LoopDelay
  readonly #timer: NodeJS.Timeout
  #isSlow = false

  /** @param calls running model calls of known keys */
  constructor(calls: () => number, limits: Partial<typeof LOAD_LIMITS> = {}, delay: LoopDelay = startedHistogram()) {
    this.#limits = { ...LOAD_LIMITS, ...limits }
    this.#calls = calls
    this.#delay = delay
    this.#timer = setInterval(() => this.measure(), this.#limits.windowMs).unref()
  }

  /** Read at the start of a call, before the call counts. */
  get isOverloaded(): boolean {
    return this.#isSlow || this.#calls() >= this.#limits.maxCalls
  }

  /** Samples the event-loop delay of the last window, and resets it. Called by a timer. */
  measure(): void {
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
