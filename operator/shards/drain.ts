import type { Shard } from './shard.ts'

/** The last writes before a clean end: one more write of every shard with pending changes. */
export class Drain<Entry> {
  /** Resolves when no change is pending; rejects with the first error if a write failed. */
  readonly done: Promise<void>
  readonly #left: Set<Shard<Entry>>
  readonly #settle: { readonly resolve: () => void; readonly reject: (error: unknown) => void }
  #error: unknown

  constructor(shards: readonly Shard<Entry>[]) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.done = promise
    this.#settle = { resolve, reject }
    this.#left = new Set(shards.filter((shard) => hasWork(shard) || shard.isWriting))
    if (this.#left.size === 0) resolve()
  }

  /** Whether a shard must be written now, although its changes could wait. */
  wants(shard: Shard<Entry>): boolean {
    return this.#left.has(shard) && hasWork(shard)
  }

  /** Whether no write is left, which ends the drain. */
  get isOver(): boolean {
    return this.#left.size === 0
  }

  /** Records the end of a write. */
  wrote(shard: Shard<Entry>, error: unknown): void {
    this.#error ??= error
    if (error !== undefined || !hasWork(shard)) this.#left.delete(shard)
    if (!this.isOver) return
    if (this.#error === undefined) this.#settle.resolve()
    else this.#settle.reject(this.#error)
  }
}

function hasWork<Entry>({ pending, riding }: Shard<Entry>): boolean {
  return pending.size > 0 || riding.size > 0
}
