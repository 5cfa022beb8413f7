/** Whether the operator has work now, from its metrics, which know the depth of its queue. */
import type { ControllerProbe } from '../operator/loop/controller.ts'
import { LEVELS, type Level } from '../operator/loop/level.ts'
import type { OperatorMetrics } from '../operator/operator-deps.ts'

const ignore = (): void => undefined

/** Metrics without a port: only an operator process in a cluster serves them. */
export class OperatorProgress {
  readonly #depths = new Map<Level, number>(LEVELS.map((level) => [level, 0]))
  #probe: ControllerProbe | undefined
  #waiting = 0

  /** Whether nothing is queued, nothing runs, and no acknowledgement of the gateway is awaited. */
  get isIdle(): boolean {
    const queued = [...this.#depths.values()].some((depth) => depth > 0)
    return this.#probe !== undefined && !queued && this.#probe.activeWorkers() === 0 && this.#waiting === 0
  }

  /** For `createOperator`. */
  readonly metrics: OperatorMetrics = {
    committed: ignore,
    revoked: ignore,
    polled: ({ waiting }) => void (this.#waiting = waiting),
    unreadableEntries: ignore,
    orphaned: ignore,
    startBlocked: ignore,
    eventDropped: ignore,
    installationForeign: ignore,
    ledger: {
      read: ignore,
      restored: ignore,
      reaped: ignore,
      swept: ignore,
      checkpointAge: ignore,
    },
    controller: {
      queue: {
        depth: (level, items) => void this.#depths.set(level, items),
        added: ignore,
        retried: ignore,
        waited: ignore,
        worked: ignore,
      },
      reconciled: ignore,
      watching: (probe) => void (this.#probe = probe),
    },
  }
}
