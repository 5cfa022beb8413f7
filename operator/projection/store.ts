import type { RecordKind } from '#contract/records/record-kinds.ts'
import { type Acknowledgement, decodeAcknowledgement, type ProjectionMeta } from '#contract/records/revision-log.ts'

/** One wanted change. `text` is the encoded record, absent for `del`; the store sets the revision in it. */
export interface ProjectionChange {
  readonly kind: RecordKind
  readonly op: 'put' | 'del'
  readonly id: string
  readonly text?: string
}

/** Identity and rights of a writer. */
export interface Writer {
  /** Fencing token of the leader. The store refuses a token below the highest one that has written. */
  readonly fence: number
  /** Installation of the writer. It adopts a projection that names no installation. */
  readonly installation: string
  /** Whether a rebuild may replace the projection of another installation (a setting of the administrator, after a disaster). */
  readonly takesOver?: boolean
}

/** Result of a write. `revisions` has one revision per change: for an unchanged record the revision that it has already. */
export type WriteOutcome =
  | { readonly outcome: 'written'; readonly revisions: readonly number[] }
  /** The store is empty, holds a projection that this writer did not build, or went back to an older state: rebuild. */
  | { readonly outcome: 'foreign-epoch' }
  /** A newer leader has written: stop writing for good. */
  | { readonly outcome: 'fenced'; readonly fence: number }
  | { readonly outcome: 'foreign-installation'; readonly installation: string }

export interface LiveProcess {
  /** `<pod>/<process>` */
  readonly process: string
  readonly pod: string
  /** undefined when the heartbeat cannot be read, is too long, or claims a revision that the store does not have: it acknowledges nothing */
  readonly acknowledgement: Acknowledgement | undefined
  /** Whether the process claims a revision of this data set that the store does not have: the claim is false, or the store went back. */
  readonly isAhead?: boolean
}

/** @param newest data set and revision of the store at that moment: a claim of a higher revision proves nothing */
export function liveProcess(process: string, text: string, newest: { readonly epoch: string; readonly revision: number }): LiveProcess {
  const slash = process.lastIndexOf('/')
  const pod = slash < 0 ? process : process.slice(0, slash)
  const acknowledgement = decodeAcknowledgement(text)
  if (acknowledgement?.epoch === newest.epoch && acknowledgement.revision > newest.revision)
    return { process, pod, acknowledgement: undefined, isAhead: true }
  return { process, pod, acknowledgement }
}

/**
 * The writing side of the projection. Implementations: Redis (`redis-projection-store.ts`) and memory (`standalone/`).
 * Every method rejects when the store does not answer in time; the store may have applied a write all the same.
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
  /** Writes a new data set beside the old one and switches in one step. @param revision of the switch: above every revision seen before */
  rebuild(writer: Writer, epoch: string, revision: number, records: readonly ProjectionChange[]): Promise<WriteOutcome>
  /** Ids of all records of one kind in one data set. */
  ids(epoch: string, kind: RecordKind): Promise<readonly string[]>
  /** Texts of the records that exist, by id. */
  records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>>
  /** Processes that sent a heartbeat within `LIVE_FOR_MS` by the clock of the store. Also removes damaged and oversized heartbeats. */
  liveProcesses(): Promise<readonly LiveProcess[]>
  close(): Promise<void>
}
