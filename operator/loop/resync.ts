import { sleep, type Clock } from '#platform/clock.ts'
import { refOf, type Informer } from '#kube/port.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'

interface ResyncDeps {
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
  readonly kind: string
  /** Every object is reconciled once per round. */
  readonly informer: Pick<Informer, 'list'>
  readonly enqueue: (item: Item, level: Level) => void
}

const SHORTEST_ROUND_MS = 600_000
const SPREAD = 0.1
/** Objects per second at most. A run of an ApiKey reads one Secret from the API server, and each read is one line of its audit log. */
const MAX_PER_SECOND = 25
/** A round is cut into steps of this length or less, ms. */
const STEP_MS = 1_000

/**
 * Reconciles every known object of a kind at background level, spread evenly over 10 minutes ±10 %. More than 13,500 objects take longer,
 * because each second has at most 25 of them. The first object follows after one step. A round keeps no list, so an object that leaves the
 * cache leaves memory.
 */
export async function resync(deps: ResyncDeps, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) await round(deps, stopped)
}

async function round({ clock, random, kind, informer, enqueue }: ResyncDeps, stopped: AbortSignal): Promise<void> {
  let count = 0
  for (const _object of informer.list()) count += 1
  const lengthMs = Math.max(SHORTEST_ROUND_MS * (1 - SPREAD + random() * 2 * SPREAD), (count * 1_000) / MAX_PER_SECOND)
  const steps = Math.ceil(lengthMs / STEP_MS)
  const objects = informer.list()[Symbol.iterator]() // reads the cache while it is consumed: its list may change meanwhile
  const startedAtMs = clock.monotonic()
  let taken = 0
  for (let step = 1; step <= steps; step += 1) {
    const dueAtMs = startedAtMs + (lengthMs * step) / steps // not from the last step on: late timers would add up
    await sleep(clock, Math.max(0, dueAtMs - clock.monotonic()), stopped)
    if (stopped.aborted) return
    for (; taken < Math.floor((count * step) / steps); taken += 1) {
      const { value: object } = objects.next()
      if (object !== undefined) enqueue({ kind, ref: refOf(object) }, 'background')
    }
  }
}
