import { sleep, type Clock } from '#platform/clock.ts'
import { HEARTBEAT_EVERY_MS, type Acknowledgement } from '#contract/records/revision-log.ts'
import type { ProjectionSource } from './projection-source.ts'

interface HeartbeatDeps {
  readonly source: Pick<ProjectionSource, 'heartbeat' | 'leave'>
  /** `<pod>/<process>`. The process part is random per start. */
  readonly process: string
  readonly clock: Clock
  readonly acknowledgement: () => Acknowledgement
}

const SHORTEST_GAP_MS = 25 // at most forty a second, however many revisions arrive: a new key is issued only after its acknowledgement (decision 11)

/** Reports each second that this process lives, and reports new revisions at once. */
export class Heartbeat {
  readonly #deps: HeartbeatDeps
  readonly #stopped = new AbortController()
  #wake = new AbortController()
  #running: Promise<void> = Promise.resolve()

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Requests a beat. A request during a beat or within 25 ms of one waits until then. */
  request(): void {
    this.#wake.abort()
  }

  /** Ends the beats and removes this process from the live ones. It never rejects. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#wake.abort()
    await this.#running
    await this.#deps.source.leave(this.#deps.process).catch(() => undefined)
  }

  async #run(): Promise<void> {
    const { source, process, clock, acknowledgement } = this.#deps
    while (!this.#stopped.signal.aborted) {
      this.#wake = new AbortController() // before the state is read, so that later changes request another beat
      const sentAt = clock.monotonic()
      await source.heartbeat(process, acknowledgement()).catch(() => undefined) // the follower reports outages of the store
      const passed = (): number => clock.monotonic() - sentAt
      await sleep(clock, HEARTBEAT_EVERY_MS - passed(), this.#wake.signal)
      await sleep(clock, SHORTEST_GAP_MS - passed(), this.#stopped.signal)
    }
  }
}
