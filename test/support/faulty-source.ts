import type { OnBatch, ProjectionSource } from '../../gateway/projection/projection-source.ts'
import type { Clock } from '#platform/clock.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import type { Acknowledgement, LogEntry, ProjectionMeta } from '#contract/records/revision-log.ts'

/** Fifty times as fast as the wall clock: waits of seconds take a test some milliseconds. */
export const hurriedClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now() * 50,
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.max(delayMs, 0) / 50)
    return () => clearTimeout(timer)
  },
}

/** A projection that fails on demand, and whose reads wait no longer than the hurried clock would. */
export class FaultySource implements ProjectionSource {
  /** Every call rejects, as when Redis is unreachable. */
  down = false
  /** The answer of `meta`; undefined = the real one. */
  meta_: ProjectionMeta | 'none' | undefined
  /** Entries that `read` hides: the log was trimmed. */
  trimmedBelow = 0
  /** Runs before the records are returned, so during a load. */
  beforeScan: () => Promise<void> = () => Promise.resolve()
  loads = 0
  readonly beats: Acknowledgement[] = []
  readonly left: string[] = []
  readonly #inner: ProjectionSource

  constructor(inner: ProjectionSource) {
    this.#inner = inner
  }

  async meta(): Promise<ProjectionMeta | undefined> {
    this.#assertUp()
    if (this.meta_ !== undefined) return this.meta_ === 'none' ? undefined : this.meta_
    return await this.#inner.meta()
  }

  async scan(epoch: string, kind: RecordKind, onBatch: OnBatch): Promise<void> {
    this.#assertUp()
    if (kind === 'key') this.loads += 1
    await this.beforeScan()
    await this.#inner.scan(epoch, kind, onBatch)
  }

  async read(revision: number, waitMs: number): Promise<readonly LogEntry[]> {
    this.#assertUp()
    const entries = await this.#inner.read(revision, Math.min(waitMs, 5))
    this.#assertUp()
    return entries.filter((entry) => entry.revision >= this.trimmedBelow)
  }

  async records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>> {
    this.#assertUp()
    return await this.#inner.records(epoch, kind, ids)
  }

  async heartbeat(process: string, acknowledgement: Acknowledgement): Promise<void> {
    this.#assertUp()
    this.beats.push(acknowledgement)
    await this.#inner.heartbeat(process, acknowledgement)
  }

  async leave(process: string): Promise<void> {
    this.#assertUp()
    this.left.push(process)
    await this.#inner.leave(process)
  }

  async close(): Promise<void> {
    await this.#inner.close()
  }

  #assertUp(): void {
    if (this.down) throw new Error('the store is away; start it')
  }
}
