import type { Acknowledgement, ProjectionMeta, RecordKind } from '../../gateway/shared/revision-log.ts'

/** One wanted change; `text` is the encoded record (its `rev` is stamped by the store), absent for `del`. */
export interface ProjectionChange {
  readonly kind: RecordKind
  readonly op: 'put' | 'del'
  readonly id: string
  readonly text?: string
}

/** What became of a write. `revs` has one revision per change, that of the present record where nothing changed. */
export type WriteOutcome =
  | { readonly outcome: 'written'; readonly revs: readonly number[] }
  /** The store holds no projection, not the one this writer built, or an older state of it: rebuild. */
  | { readonly outcome: 'foreign-epoch' }
  /** A newer leader has written: stop writing for good. */
  | { readonly outcome: 'fenced'; readonly fence: number }

/** A gateway process with a recent heartbeat. */
export interface LiveProcess {
  /** `<pod>/<process>` */
  readonly process: string
  readonly pod: string
  /** undefined when the heartbeat cannot be read (then nothing counts as acknowledged) */
  readonly acknowledgement: Acknowledgement | undefined
}

/**
 * The writing side of the projection. Implementations: Redis (`redis-projection-store.ts`) and memory (`standalone/`).
 * Every method rejects when the store does not answer in time; nothing may be assumed then, a write may have been applied.
 */
export interface ProjectionStore {
  meta(): Promise<ProjectionMeta | undefined>
  /**
   * Applies up to 200 changes in one atomic step: an unchanged record costs no revision.
   * @param floor newest revision that this writer has seen: a store below it went back to an older state and answers `foreign-epoch`
   */
  write(fence: number, epoch: string, changes: readonly ProjectionChange[], floor: number): Promise<WriteOutcome>
  /**
   * Writes a whole new data set beside the old one and switches to it in one step.
   * @param rev the revision of the switch itself: above every one that readers may have seen
   */
  rebuild(fence: number, epoch: string, rev: number, records: readonly ProjectionChange[]): Promise<WriteOutcome>
  /** Ids of all records of one kind in one data set. */
  ids(epoch: string, kind: RecordKind): Promise<readonly string[]>
  /** @returns the text of one record, undefined when there is none */
  record(epoch: string, kind: RecordKind, id: string): Promise<string | undefined>
  /** Processes that sent a heartbeat within `LIVE_FOR_MS` by the clock of the store. */
  liveProcesses(): Promise<readonly LiveProcess[]>
  close(): Promise<void>
}
