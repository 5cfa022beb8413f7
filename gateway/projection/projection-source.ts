import type { RecordKind } from '#contract/records/record-kinds.ts'
import type { Acknowledgement, LogEntry, ProjectionMeta } from '#contract/records/revision-log.ts'

export type RecordBatch = ReadonlyArray<readonly [id: string, text: string]>
export type OnBatch = (batch: RecordBatch) => void | Promise<void>

/**
 * The source of the projection. Implementations: Redis (`redis-projection.ts`) and memory (`standalone/`). Every method rejects when the
 * store does not answer in time. The caller retries and serves its present tables.
 */
export interface ProjectionSource {
  /** @returns undefined if no operator has built a projection yet */
  meta(): Promise<ProjectionMeta | undefined>
  /** The set may change during the call: the caller then reads the log from the earlier meta. @param onBatch awaited before the next batch */
  scan(epoch: string, kind: RecordKind, onBatch: OnBatch): Promise<void>
  /** Reads entries after `revision` in order, at most 500. Waits up to `waitMs` for the first one and returns [] if none arrives. */
  read(revision: number, waitMs: number): Promise<readonly LogEntry[]>
  /** Reads the newest texts of records of one data set, by id. An id without a record is absent. */
  records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>>
  /** Reports that this process lives and which revision it has applied. */
  heartbeat(process: string, acknowledgement: Acknowledgement): Promise<void>
  leave(process: string): Promise<void>
  /** Closes the connections. A pending `read` returns or rejects. */
  close(): Promise<void>
}

/** A table that the follower fills without knowing its content: keys (`auth/key-table.ts`), models (`upstream/model-table.ts`). */
export interface RecordTable {
  /** Applies a change. @returns false if the text cannot be read; the last good record then stays, unless the text has needs that are not met */
  put(id: string, text: string): boolean
  delete(id: string): void
  has(id: string): boolean
  /** Starts a full load beside the data in use, which stay unchanged until `commit`. */
  load(): RecordLoad
}

/** A running full load: a second set of data that replaces the first at once. */
export interface RecordLoad {
  /** @returns false if the text cannot be read; `commit` then keeps the last good record of that id, if any, as `RecordTable.put` does */
  put(id: string, text: string): boolean
  delete(id: string): void
  commit(): void
}
