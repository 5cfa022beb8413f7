/** How far an uninstall has come. It goes on for as long as it makes progress: a fixed time would be too short for some number of objects. */
import { type Clock, sleep } from '#platform/clock.ts'
import type { ReleaseProgress } from '../kinds/release.ts'

/** Time without any progress after which the command ends, ms. */
export const STUCK_AFTER_MS = 60_000
/** Shortest time between two lines about progress, ms. */
const PRINT_EVERY_MS = 2_000
const LOOK_EVERY_MS = 1_000

interface ProgressDeps {
  readonly clock: Clock
  readonly print: (line: string) => void
  /** What is released, plural. */
  readonly noun: string
}

export class Progress {
  readonly #deps: ProgressDeps
  #movedAtMs: number
  #printedAtMs = -Infinity
  #last = ''

  constructor(deps: ProgressDeps) {
    this.#deps = deps
    this.#movedAtMs = deps.clock.monotonic()
  }

  /** Something was done. */
  moved(): void {
    this.#movedAtMs = this.#deps.clock.monotonic()
  }

  /** Prints numbers that have changed, at a bounded rate. @param counts undefined: the leader has said nothing yet */
  counted(counts: ReleaseProgress | undefined): void {
    if (counts === undefined) return
    const { done, total } = counts
    const { clock, print, noun } = this.#deps
    const text = `${done} ${total}`
    if (text === this.#last) return
    this.#last = text
    this.moved()
    const nowMs = clock.monotonic()
    if (total === 0 || (done < total && nowMs - this.#printedAtMs < PRINT_EVERY_MS)) return
    this.#printedAtMs = nowMs
    print(`uninstall: ${grouped(done)} of ${grouped(total)} ${noun} released`)
  }

  /** Waits for work that reports its progress here. @throws the error of the work; an Error when nothing has moved for too long */
  async bound(work: Promise<void>): Promise<void> {
    const ended = new AbortController()
    try {
      await Promise.race([work, this.#watch(ended.signal)])
    } finally {
      ended.abort()
    }
  }

  async #watch(ended: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    while (!ended.aborted) {
      await sleep(clock, LOOK_EVERY_MS, ended)
      if (clock.monotonic() - this.#movedAtMs >= STUCK_AFTER_MS) throw new Error(`no progress for ${STUCK_AFTER_MS / 1000} s`)
    }
  }
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
