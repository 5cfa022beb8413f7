/** Sends what a process has counted to the store, on a timer. A store that is away costs no call anything: the sums wait in memory. */
import type { UsageReport } from '#contract/usage/usage-report.ts'
import type { Cancel, Clock } from '#platform/clock.ts'
import type { OutageLog } from '#platform/outage-log.ts'
import type { UsageMeter } from './usage-meter.ts'

/** Where reports go. */
export interface UsageStore {
  /** @returns the reports that have counted, now or before @throws errors of the store: some may have counted */
  count(reports: readonly UsageReport[]): Promise<readonly UsageReport[]>
}

export interface UsageReporterDeps {
  readonly meter: UsageMeter
  readonly store: UsageStore
  readonly clock: Clock
  readonly outage: Pick<OutageLog, 'failed' | 'works'>
}

/** Time between two reports of an account, ms. A process that dies loses what it has counted in this time. */
export const REPORT_EVERY_MS = 2_000

export class UsageReporter {
  readonly #deps: UsageReporterDeps
  #cancel: Cancel = () => undefined
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(deps: UsageReporterDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#cancel = this.#deps.clock.after(REPORT_EVERY_MS, () => {
      this.#running = this.#report().then(() => (this.#isStopped ? undefined : this.start()))
    })
  }

  /** Sends what is left: once, since a store that is away would delay the end. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    await this.#running
    await this.#report()
  }

  async #report(): Promise<void> {
    const { meter, store, outage } = this.#deps
    if (meter.isEmpty) return
    try {
      meter.counted(await store.count(meter.reports()))
      outage.works()
    } catch (error) {
      outage.failed(`usage of accounts waits in memory: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}
