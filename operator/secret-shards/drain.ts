import type { Shard } from './shard.ts'

/** The last writes before a clean end: every shard that has something to write, once more. */
export class Drain<Entry> {
  /** Resolves when nothing waits any more; rejects with the first error when something failed. */
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

  /** Whether a shard has to be written now, whatever it waits for. */
  wants(shard: Shard<Entry>): boolean {
    return this.#left.has(shard) && hasWork(shard)
  }

  /** Nothing is left to write. */
  get isOver(): boolean {
    return this.#left.size === 0
  }

  /** A write of a shard has ended. */
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
