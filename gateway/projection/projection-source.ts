import type { Acknowledgement, LogEntry, ProjectionMeta, RecordKind } from '../shared/revision-log.ts'

/** Takes one batch of records. */
export type OnBatch = (batch: ReadonlyArray<readonly [id: string, text: string]>) => void | Promise<void>

/**
 * Where a gateway process reads the projection from. Implementations: Redis (`redis-projection.ts`) and memory (`standalone/`).
 * Every method rejects when the store does not answer in time; the caller retries and keeps serving what it has.
 */
export interface ProjectionSource {
  /** @returns undefined when no operator has built a projection yet */
  meta(): Promise<ProjectionMeta | undefined>
  /**
   * Hands over every record of one kind in batches; the set may change meanwhile, so the log is read from the meta taken before.
   * @param onBatch may take its time; a source with a back end waits for it before it fetches more
   */
  scan(epoch: string, kind: RecordKind, onBatch: OnBatch): Promise<void>
  /** Entries after `revision` in order, at most 500; waits up to `waitMs` for the first one and returns [] when none came. */
  read(revision: number, waitMs: number): Promise<readonly LogEntry[]>
  /** Newest texts of records of one data set, by id; an id without a record is absent. */
  records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>>
  /** Says that this process lives and what it has applied. */
  heartbeat(process: string, acknowledgement: Acknowledgement): Promise<void>
  /** Takes this process out of the live ones (clean shutdown). */
  leave(process: string): Promise<void>
  /** Ends connections; a pending `read` returns or rejects. */
  close(): Promise<void>
}
