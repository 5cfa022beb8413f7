import type { Acknowledgement, ProjectionMeta, RecordKind } from '../../gateway/shared/revision-log.ts'

/** One wanted change; `text` is the encoded record (its `revision` is stamped by the store), absent for `del`. */
export interface ProjectionChange {
  readonly kind: RecordKind
  readonly op: 'put' | 'del'
  readonly id: string
  readonly text?: string
}

/** The writer. */
export interface Writer {
  /** Fencing token of the leader: a lower one than the newest that has written is refused. */
  readonly fence: number
  /** Installation whose projection this is; a projection without one is adopted. */
  readonly installation: string
  /** A rebuild replaces the projection of another installation too (a setting of the administrator, after a disaster). */
  readonly takesOver?: boolean
}

/** Result of a write. `revisions` has one revision per change; for an unchanged record the revision of the present record. */
export type WriteOutcome =
  | { readonly outcome: 'written'; readonly revisions: readonly number[] }
  /** The store holds no projection, not the one this writer built, or an older state of it: rebuild. */
  | { readonly outcome: 'foreign-epoch' }
  /** A newer leader has written: stop writing for good. */
  | { readonly outcome: 'fenced'; readonly fence: number }
  /** The store belongs to another installation: nothing was written. */
  | { readonly outcome: 'foreign-installation'; readonly installation: string }

/** A gateway process with a recent heartbeat. */
export interface LiveProcess {
  /** `<pod>/<process>` */
  readonly process: string
  readonly pod: string
  /** undefined when it cannot be read, is too long, or claims a revision that the store does not have: nothing counts as acknowledged */
  readonly acknowledgement: Acknowledgement | undefined
  /** Whether the process claims a revision of the present data set that the store does not have: the claim is false, or the store went back to an older state. */
  readonly isAhead?: boolean
}

/**
 * The writing side of the projection. Implementations: Redis (`redis-projection-store.ts`) and memory (`standalone/`).
 * Every method rejects when the store does not answer in time; nothing may be assumed then, a write may have been applied.
 */
export interface ProjectionStore {
  /** Prepares the store for a writer; called at every take-over. */
  prepare(): Promise<void>
  meta(): Promise<ProjectionMeta | undefined>
  /**
   * Applies up to 200 changes in one atomic step: an unchanged record costs no revision.
   * @param floor newest revision that this writer has seen: a store below it went back to an older state and answers `foreign-epoch`
   */
  write(writer: Writer, epoch: string, changes: readonly ProjectionChange[], floor: number): Promise<WriteOutcome>
  /**
   * Writes a whole new data set beside the old one and switches to it in one step.
   * @param revision the revision of the switch itself: above every one that readers may have seen
   */
  rebuild(writer: Writer, epoch: string, revision: number, records: readonly ProjectionChange[]): Promise<WriteOutcome>
  /** Ids of all records of one kind in one data set. */
  ids(epoch: string, kind: RecordKind): Promise<readonly string[]>
  /** Texts of the records that are there, by id. */
  records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>>
  /** Processes that sent a heartbeat within `LIVE_FOR_MS` by the clock of the store. Repairs what a foreign writer may have left there. */
  liveProcesses(): Promise<readonly LiveProcess[]>
  close(): Promise<void>
}
