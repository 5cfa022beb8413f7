import { sleep, type Clock } from '../process/clock.ts'
import { HEARTBEAT_EVERY_MS, type Acknowledgement } from '../shared/revision-log.ts'
import type { ProjectionSource } from './projection-source.ts'

/** What the heartbeat needs. */
export interface HeartbeatDeps {
  readonly source: Pick<ProjectionSource, 'heartbeat' | 'leave'>
  /** `<pod>/<process>`; the process part is random per start. */
  readonly process: string
  readonly clock: Clock
  /** The present state, asked for at each beat. */
  readonly acknowledgement: () => Acknowledgement
}

const SHORTEST_GAP_MS = 25 // at most forty a second, however many revisions come: a new key is handed out only after its acknowledgement

/** Says each second that this process lives, and at once when it has applied something new. */
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

  /** Asks for a beat now; a request during a beat or within 25 ms of one is answered after that. */
  request(): void {
    this.#wake.abort()
  }

  /** Ends the beats and takes this process out of the live ones; never rejects. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#wake.abort()
    await this.#running
    await this.#deps.source.leave(this.#deps.process).catch(ignoreOutage)
  }

  async #run(): Promise<void> {
    const { source, process, clock, acknowledgement } = this.#deps
    while (!this.#stopped.signal.aborted) {
      this.#wake = new AbortController() // before the state is read: what changes from here on asks again
      const sentAt = clock.monotonic()
      await source.heartbeat(process, acknowledgement()).catch(ignoreOutage)
      const passed = (): number => clock.monotonic() - sentAt
      await sleep(clock, HEARTBEAT_EVERY_MS - passed(), this.#wake.signal)
      await sleep(clock, SHORTEST_GAP_MS - passed(), this.#stopped.signal)
    }
  }
}

/** The follower reports an outage of the store; a missed beat is seen by the operator, which is its purpose. */
function ignoreOutage(): void {
  return
}
