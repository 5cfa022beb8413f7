import { sleep, type Clock } from '#platform/clock.ts'
import { refOf, type Informer } from '#kube/port.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'

interface ResyncDeps {
  readonly clock: Clock
  /** [0, 1) */
  readonly random: () => number
  /** Every object of these is reconciled once per interval. */
  readonly kinds: ReadonlyArray<{ readonly kind: string; readonly informer: Pick<Informer, 'list'> }>
  readonly enqueue: (item: Item, level: Level) => void
}

const INTERVAL_MS = 600_000
const SPREAD = 0.1
/** A round is cut into this many steps. */
const STEPS = 600

/**
 * Reconciles every known object every 10 minutes ±10 % at background level, spread evenly: 100,000 at once would be too many reads. The first
 * object follows after one step of the interval. A round keeps no list, so an object that leaves the cache leaves memory.
 */
export async function resync(deps: ResyncDeps, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) await round(INTERVAL_MS * (1 - SPREAD + deps.random() * 2 * SPREAD), deps, stopped)
}

async function round(lengthMs: number, { clock, kinds, enqueue }: ResyncDeps, stopped: AbortSignal): Promise<void> {
  let count = 0
  for (const _item of everyItem(kinds)) count += 1
  const items = everyItem(kinds)
  const startedAtMs = clock.monotonic()
  let taken = 0
  for (let step = 1; step <= STEPS; step += 1) {
    const dueAtMs = startedAtMs + (lengthMs * step) / STEPS // not from the last step on: late timers would add up
    await sleep(clock, Math.max(0, dueAtMs - clock.monotonic()), stopped)
    if (stopped.aborted) return
    for (; taken < Math.floor((count * step) / STEPS); taken += 1) {
      const { value: item } = items.next()
      if (item !== undefined) enqueue(item, 'background')
    }
  }
}

/** Reads the caches while it is consumed: their lists may change meanwhile. */
function* everyItem(kinds: ResyncDeps['kinds']): Generator<Item, undefined> {
  for (const { kind, informer } of kinds) for (const object of informer.list()) yield { kind, ref: refOf(object) }
}
