import type { Cancel, Clock } from '#platform/clock.ts'
import { itemKey, type Item } from './item.ts'
import { highest, type Level } from './level.ts'

interface Delayed {
  readonly level: Level
  readonly dueMs: number
  readonly cancel: Cancel
}

/** Items to add to a queue later, each with one timer. */
export class DelayedAdds {
  readonly #clock: Clock
  readonly #add: (item: Item, level: Level) => void
  readonly #delayed = new Map<string, Delayed>()

  /** @param add called when an item falls due; early by design for delays above the longest timer (24.8 days) */
  constructor(clock: Clock, add: (item: Item, level: Level) => void) {
    this.#clock = clock
    this.#add = add
  }

  /** Of several delays of one item the earliest counts, and the highest level. */
  set(item: Item, delayMs: number, level: Level): void {
    const key = itemKey(item)
    const dueMs = this.#clock.monotonic() + delayMs
    const present = this.#delayed.get(key)
    const due = { level: present ? highest(present.level, level) : level, dueMs: Math.min(present?.dueMs ?? dueMs, dueMs) }
    if (present?.dueMs === due.dueMs && present.level === due.level) return
    present?.cancel()
    const cancel = this.#clock.after(due.dueMs - this.#clock.monotonic(), () => {
      this.#delayed.delete(key)
      this.#add(item, due.level)
    })
    this.#delayed.set(key, { ...due, cancel })
  }

  cancel(item: Item): void {
    const key = itemKey(item)
    this.#delayed.get(key)?.cancel()
    this.#delayed.delete(key)
  }

  clear(): void {
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
  }
}
