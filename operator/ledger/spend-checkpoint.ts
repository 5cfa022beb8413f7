/** The durable spend of every subject: a few sharded Secrets, written within seconds of a change, and never without one. */
import { SecretShards, type SecretShardsDeps } from '../secret-shards/secret-shards.ts'
import { type SpendEntry, spendCodec } from './spend-entry.ts'

/** Some 15,000 subjects in each, within the bound of a Secret. The operator alone reads them, so the number is no setting. */
export const SPEND_SHARDS = 8
/** Between two writes of one shard, ms: 3.2 writes a second while every subject spends. */
const WRITE_EVERY_MS = 2_500

/** What the checkpoint needs. */
export interface SpendCheckpointDeps extends Omit<SecretShardsDeps, 'backlog' | 'version' | 'onWrite'> {
  /** A Secret was written. */
  readonly onWrite?: (bytes: number) => void
}

/** By uid of the ApiKey. */
export class SpendCheckpoint {
  readonly #deps: SpendCheckpointDeps
  readonly #shards: SecretShards<SpendEntry>
  /** Entries that are not durable yet, and since when the oldest spend in them is known, ms monotonic. */
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

  /** @throws KubeError when the Secrets cannot be listed */
  async load(): Promise<void> {
    await this.#shards.load()
  }

  get(uid: string): SpendEntry | undefined {
    return this.#shards.get(uid)
  }

  /** @param sinceMs monotonic ms: when somebody first knew that there is something new */
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

  /** How long the oldest known spend waits to become durable, s. */
  get ageSeconds(): number {
    let oldest = this.#deps.clock.monotonic()
    for (const { sinceMs } of this.#waiting.values()) oldest = Math.min(oldest, sinceMs)
    return (this.#deps.clock.monotonic() - oldest) / 1_000
  }

  /** Entries of another version, which stay as they are. */
  get unreadable(): number {
    return [...this.#shards.unreadable()].length
  }

  /** Has every Secret read again: one that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    this.#shards.check()
  }

  /** Writes what is not durable, before a clean end. @throws the first error */
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
