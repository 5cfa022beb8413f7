/** Keeps the durable spend of every subject in a few sharded Secrets. Writes a Secret within seconds of a change, and only then. */
import { SecretShards, type SecretShardsDeps } from '../shards/secret-shards.ts'
import { type SpendEntry, spendCodec } from './spend-entry.ts'

/** Number of shards: about 15,000 subjects fit into each Secret. Only the operator reads the Secrets, so the number is no setting. */
export const SPEND_SHARDS = 8
/** Time between two writes of one shard, ms: 3.2 writes per second while every subject spends. */
const WRITE_EVERY_MS = 2_500

/** Dependencies of the checkpoint. */
export interface SpendCheckpointDeps extends Omit<SecretShardsDeps, 'backlog' | 'version' | 'onWrite'> {
  /** Called when a Secret was written. */
  readonly onWrite?: (bytes: number) => void
}

/** Keeps entries by uid of the ApiKey. */
export class SpendCheckpoint {
  readonly #deps: SpendCheckpointDeps
  readonly #shards: SecretShards<SpendEntry>
  /** Entries that are not durable yet, with the time at which their oldest spend was first known, ms monotonic. */
  readonly #waiting = new Map<string, { readonly entry: SpendEntry; readonly sinceMs: number }>()

  constructor(deps: SpendCheckpointDeps) {
    this.#deps = deps
    this.#shards = new SecretShards<SpendEntry>({
      ...deps,
      set: 'spend',
      shards: SPEND_SHARDS,
      codec: spendCodec,
      remedy: 'use fewer ApiKeys with budgets',
      rideMs: WRITE_EVERY_MS,
      onChange: (uids) => this.#written(uids),
      onWrite: (_, bytes) => deps.onWrite?.(bytes),
    })
  }

  /** @throws KubeError if the Secrets cannot be listed */
  async load(): Promise<void> {
    await this.#shards.load()
  }

  get(uid: string): SpendEntry | undefined {
    return this.#shards.get(uid)
  }

  /** @param sinceMs time at which the new spend was first known, monotonic ms */
  put(entry: SpendEntry, sinceMs: number): void {
    const since = this.#waiting.get(entry.uid)?.sinceMs ?? sinceMs
    this.#waiting.set(entry.uid, { entry, sinceMs: Math.min(since, sinceMs) })
    this.#shards.commitLater(entry)
  }

  remove(uid: string): void {
    this.#waiting.delete(uid)
    if (this.#shards.get(uid) !== undefined) this.#shards.remove(uid, 'background')
  }

  entries(): Iterable<SpendEntry> {
    return this.#shards.entries()
  }

  /** Time for which the oldest known spend has waited to become durable, s. */
  get ageSeconds(): number {
    let oldest = this.#deps.clock.monotonic()
    for (const { sinceMs } of this.#waiting.values()) oldest = Math.min(oldest, sinceMs)
    return (this.#deps.clock.monotonic() - oldest) / 1_000
  }

  /** Number of entries of another version, which are never changed. */
  get unreadable(): number {
    return [...this.#shards.unreadable()].length
  }

  /** Reads every Secret again. A Secret that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    this.#shards.check()
  }

  /** Writes all entries that are not durable, before a clean end. @throws the first error */
  flush(): Promise<void> {
    return this.#shards.flush()
  }

  stop(): void {
    this.#shards.stop()
  }

  #written(uids: Iterable<string>): void {
    for (const uid of uids) if (this.#waiting.get(uid)?.entry === this.#shards.durable(uid)) this.#waiting.delete(uid)
  }
}
