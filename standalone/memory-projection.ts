/**
 * The projection in memory, in place of Redis. One object is both ends: the operator's ProjectionStore and the gateway's
 * ProjectionSource. Records pass as text, so both sides encode and decode exactly as they do over Redis.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { OnBatch, ProjectionSource } from '../gateway/projection/projection-source.ts'
import { PROJECTION_SCHEMA } from '#contract/records/format.ts'
import type { RecordKind } from '#contract/records/record-kinds.ts'
import { LOG_LENGTH } from '#contract/redis/redis-keys.ts'
import {
  encodeAcknowledgement,
  LIVE_FOR_MS,
  stampRevision,
  type Acknowledgement,
  type LogEntry,
  type ProjectionMeta,
} from '#contract/records/revision-log.ts'
import {
  type LiveProcess,
  liveProcess,
  type ProjectionChange,
  type ProjectionStore,
  type Writer,
  type WriteOutcome,
} from '../operator/projection/store.ts'

/** Options for tests. */
export interface MemoryProjectionOptions {
  /** ms, only for heartbeats; the clock of the store. */
  readonly now?: () => number
  /** Entries that the log keeps; a reader further behind sees a gap and reloads. */
  readonly logLength?: number
}

interface StoredRecord {
  readonly revision: number
  readonly text: string
}

/** By kind and id; also of kinds that only a newer build knows. */
type Records = Map<string, Map<string, StoredRecord>>

const READ_LIMIT = 500
const SCAN_BATCH = 500

/** ProjectionStore and ProjectionSource over one in-memory data set. */
export class MemoryProjection implements ProjectionStore, ProjectionSource {
  readonly #now: () => number
  readonly #logLength: number
  readonly #heartbeats = new Map<string, { atMs: number; text: string }>()
  #meta: ProjectionMeta | undefined
  #records: Records = new Map()
  #log: LogEntry[] = []
  /** Aborted by the next change. */
  #change = new AbortController()

  constructor({ now = Date.now, logLength = LOG_LENGTH }: MemoryProjectionOptions = {}) {
    this.#now = now
    this.#logLength = logLength
  }

  /** Does nothing, because there are no functions to load. */
  async prepare(): Promise<void> {
    return
  }

  async meta(): Promise<ProjectionMeta | undefined> {
    return this.#meta
  }

  async write(writer: Writer, epoch: string, changes: readonly ProjectionChange[], floor = 0): Promise<WriteOutcome> {
    if (this.#meta === undefined) return { outcome: 'foreign-epoch' }
    const refused = refusal(this.#meta, { ...writer, takesOver: false }) // only a rebuild takes over
    if (refused) return refused
    const { fence, installation } = writer
    if (epoch !== this.#meta.epoch || this.#meta.revision < floor) return { outcome: 'foreign-epoch' }
    let revision = this.#meta.revision
    const revisions = changes.map((change) => {
      const present = ofKind(this.#records, change.kind).get(change.id)
      if (isUnchanged(change, present)) return present?.revision ?? revision
      revision += 1
      this.#put(change, revision)
      return revision
    })
    const changed = revision !== this.#meta.revision
    this.#meta = { ...this.#meta, revision, fence, installation }
    if (changed) this.#wake()
    return { outcome: 'written', revisions }
  }

  async rebuild(writer: Writer, epoch: string, revision: number, records: readonly ProjectionChange[]): Promise<WriteOutcome> {
    const refused = refusal(this.#meta, writer)
    if (refused) return refused
    this.#records = new Map()
    for (const { kind, op, id, text } of records) {
      if (op === 'put' && text !== undefined) ofKind(this.#records, kind).set(id, { revision, text: stampRevision(text, revision) })
    }
    this.#log = [] // readers of the old epoch find neither their next entry nor their epoch, and load everything
    const { fence, installation } = writer
    this.#meta = { schema: PROJECTION_SCHEMA, epoch, revision, fence, installation }
    this.#wake()
    return { outcome: 'written', revisions: records.map(() => revision) }
  }

  async ids(epoch: string, kind: RecordKind): Promise<readonly string[]> {
    return [...this.#recordsAt(epoch, kind).keys()]
  }

  async records(epoch: string, kind: RecordKind, ids: readonly string[]): Promise<Map<string, string>> {
    const all = this.#recordsAt(epoch, kind)
    return new Map(ids.flatMap((id) => (all.has(id) ? [[id, all.get(id)?.text ?? ''] as const] : [])))
  }

  async liveProcesses(): Promise<readonly LiveProcess[]> {
    const live = [...this.#heartbeats].filter(([, { atMs }]) => atMs >= this.#now() - LIVE_FOR_MS)
    return live.map(([process, { text }]) => liveProcess(process, text, this.#meta ?? { epoch: '', revision: 0 }))
  }

  async scan(epoch: string, kind: RecordKind, onBatch: OnBatch): Promise<void> {
    const all = [...this.#recordsAt(epoch, kind)].map(([id, { text }]) => [id, text] as const)
    for (let from = 0; from < all.length; from += SCAN_BATCH) await onBatch(all.slice(from, from + SCAN_BATCH))
  }

  async read(revision: number, waitMs: number): Promise<readonly LogEntry[]> {
    const present = this.#entriesAfter(revision)
    if (present.length > 0 || waitMs <= 0) return present
    await sleep(waitMs, undefined, { signal: this.#change.signal }).catch(() => undefined)
    return this.#entriesAfter(revision)
  }

  async heartbeat(process: string, acknowledgement: Acknowledgement): Promise<void> {
    this.#heartbeats.set(process, { atMs: this.#now(), text: encodeAcknowledgement(acknowledgement) })
  }

  async leave(process: string): Promise<void> {
    this.#heartbeats.delete(process)
  }

  /** Ends a waiting read. Closes nothing else, because both ends share the data and either may stop first. */
  async close(): Promise<void> {
    this.#wake()
  }

  #put(change: ProjectionChange, revision: number): void {
    const { kind, op, id, text = '' } = change
    if (op === 'del') ofKind(this.#records, kind).delete(id)
    else ofKind(this.#records, kind).set(id, { revision, text: stampRevision(text, revision) })
    this.#log.push({ revision, kind, op, id })
    if (this.#log.length > this.#logLength) this.#log.splice(0, this.#log.length - this.#logLength)
  }

  #entriesAfter(revision: number): readonly LogEntry[] {
    const first = this.#log[0]
    if (first === undefined) return []
    const from = Math.max(0, revision + 1 - first.revision) // revisions in the log are consecutive
    return this.#log.slice(from, from + READ_LIMIT)
  }

  /** As in Redis: the data set of another epoch is an absent key, which reads as empty. */
  #recordsAt(epoch: string, kind: RecordKind): ReadonlyMap<string, StoredRecord> {
    return epoch === this.#meta?.epoch ? ofKind(this.#records, kind) : new Map<string, StoredRecord>()
  }

  #wake(): void {
    this.#change.abort()
    this.#change = new AbortController()
  }
}

function ofKind(records: Records, kind: string): Map<string, StoredRecord> {
  const known = records.get(kind) ?? new Map<string, StoredRecord>()
  records.set(kind, known)
  return known
}

function isUnchanged(change: ProjectionChange, present: StoredRecord | undefined): boolean {
  if (present === undefined) return change.op === 'del'
  return change.op === 'put' && stampRevision(change.text ?? '', present.revision) === present.text
}

function refusal(present: ProjectionMeta | undefined, { fence, installation, takesOver = false }: Writer): WriteOutcome | undefined {
  if (!present) return undefined
  if (present.installation !== '' && present.installation !== installation && !takesOver)
    return { outcome: 'foreign-installation', installation: present.installation }
  return fence < present.fence ? { outcome: 'fenced', fence: present.fence } : undefined
}
