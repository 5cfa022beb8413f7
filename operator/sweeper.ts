/** When orphaned keys are looked for: before anything is projected, soon after an ApiKey is gone, and now and then. */
import { sleep } from '../gateway/shared/clock.ts'
import type { ApiKeyDeps } from './apikey/deps.ts'
import { revokeOrphans, sweep } from './apikey/sweep.ts'
import type { OperatorDeps } from './operator-deps.ts'

/** Sweeps come this often even if nothing is gone, ms. */
const SWEEP_EVERY_MS = 600_000
/** One that failed is tried again after this, ms. */
const RETRY_MS = 10_000
/** Several ApiKeys that go together are one sweep, ms. */
const TOGETHER_MS = 100

/** What sweeps need besides what a reconcile has. */
export interface SweeperDeps extends Pick<OperatorDeps, 'metrics' | 'clock'> {
  readonly settings: Pick<OperatorDeps['settings'], 'watchNamespaces'>
  readonly log: Pick<OperatorDeps['log'], 'warn' | 'error'>
}

/** Runs the sweeps of one operator. */
export class Sweeper {
  readonly #deps: SweeperDeps
  #wake = new AbortController()
  #refused = 0

  constructor(deps: SweeperDeps) {
    this.#deps = deps
  }

  /** An ApiKey is gone, perhaps by force. */
  soon(): void {
    this.#wake.abort()
  }

  /** For the start: what is projected then must not bring back a key that nobody has any more. @throws KubeError */
  async beforeStart(keyDeps: ApiKeyDeps): Promise<void> {
    this.#tell((await revokeOrphans(keyDeps, this.#watches, this.#onRefused)).length)
  }

  /** Until `stop` aborts. */
  async run(keyDeps: ApiKeyDeps, stop: AbortSignal): Promise<void> {
    stop.addEventListener('abort', () => this.soon(), { once: true })
    let pauseMs = SWEEP_EVERY_MS
    while (!stop.aborted) {
      await sleep(this.#deps.clock, pauseMs, this.#wake.signal)
      if (this.#wake.signal.aborted) await sleep(this.#deps.clock, TOGETHER_MS, stop)
      else keyDeps.keyring.check()
      this.#wake = new AbortController()
      if (!stop.aborted) pauseMs = (await this.#sweep(keyDeps)) ? SWEEP_EVERY_MS : RETRY_MS
    }
  }

  /** @returns whether it got through */
  async #sweep(keyDeps: ApiKeyDeps): Promise<boolean> {
    try {
      this.#tell(await sweep(keyDeps, this.#watches, this.#onRefused))
      return true
    } catch (error) {
      this.#deps.log.warn(`the sweep of orphaned keys failed (${error instanceof Error ? error.message : String(error)}); tried again`)
      return false
    }
  }

  #tell(revoked: number): void {
    if (revoked > 0) this.#deps.log.warn(`${revoked} keys without an ApiKey were revoked: their finalizer had been removed by force`)
  }

  readonly #watches = (namespace: string): boolean => {
    const { watchNamespaces } = this.#deps.settings
    return watchNamespaces.length === 0 || watchNamespaces.includes(namespace)
  }

  readonly #onRefused = (count: number): void => {
    this.#deps.metrics?.sweepRefused()
    if (count !== this.#refused)
      this.#deps.log.error(`${count} issued keys have no ApiKey in the cache; that many at once is more likely a fault, so none is revoked`)
    this.#refused = count
  }
}
