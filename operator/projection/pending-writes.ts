/** Changes that the store does not have yet: at most one per record, urgent ones first. */
import type { Level } from '../loop/level.ts'
import type { ProjectionChange } from './store.ts'

/** A change that may not have reached the store. */
export class PendingWrites {
  readonly #urgent = new Map<string, ProjectionChange>()
  readonly #others = new Map<string, ProjectionChange>()

  get size(): number {
    return this.#urgent.size + this.#others.size
  }

  /** Adds a change; it replaces an older change of the same record. An urgent record stays urgent: the older change may not have arrived. */
  add(change: ProjectionChange, level: Level): void {
    const key = keyOf(change)
    const isUrgent = level === 'urgent' || this.#urgent.has(key)
    this.#others.delete(key)
    if (isUrgent) this.#urgent.set(key, change)
    else this.#others.set(key, change)
  }

  has(change: Pick<ProjectionChange, 'kind' | 'id'>): boolean {
    return this.#urgent.has(keyOf(change)) || this.#others.has(keyOf(change))
  }

  /** @returns the next changes to write; they stay pending until `written` */
  next(limit: number): readonly ProjectionChange[] {
    const batch: ProjectionChange[] = []
    for (const changes of [this.#urgent, this.#others]) {
      for (const change of changes.values()) {
        if (batch.length >= limit) return batch
        batch.push(change)
      }
    }
    return batch
  }

  /** Removes a change that has reached the store. A newer change of the same record stays pending. */
  written(change: ProjectionChange): void {
    for (const changes of [this.#urgent, this.#others]) if (changes.get(keyOf(change)) === change) changes.delete(keyOf(change))
  }

  all(): readonly ProjectionChange[] {
    return [...this.#urgent.values(), ...this.#others.values()]
  }
}

/** Identifies one record: ids are unique within a kind only. */
export function keyOf({ kind, id }: Pick<ProjectionChange, 'kind' | 'id'>): string {
  return `${kind} ${id}`
}
