import type { RecordTable } from './record-table.ts'
import { MAX_UNREADABLE_RECORDS, RECORD_KINDS, type RecordKind } from '../shared/revision-log.ts'

/** Records whose newest text this process cannot read: another version wrote them, or they are damaged. */
export class UnreadableRecords {
  readonly #tables: Readonly<Record<RecordKind, Pick<RecordTable, 'has'>>>
  readonly #ids = new Set<string>()
  /** Those of which there is not even a last good text. */
  readonly #lacking: Readonly<Record<RecordKind, Set<string>>> = { key: new Set(), model: new Set() }

  constructor(tables: Readonly<Record<RecordKind, Pick<RecordTable, 'has'>>>) {
    this.#tables = tables
  }

  /** What heartbeats name. */
  get reported(): string[] {
    return [...this.#ids].slice(0, MAX_UNREADABLE_RECORDS)
  }

  get size(): number {
    return this.#ids.size
  }

  /** Some key is wholly unknown here: an unknown Credential may be its. */
  get lacksKeys(): boolean {
    return this.#lacking.key.size > 0
  }

  /** Some record is wholly unknown here. */
  get lacksAny(): boolean {
    return this.lacksKeys || this.#lacking.model.size > 0
  }

  /** Takes what a full load could not read, once the tables serve it. */
  replace(found: ReadonlyMap<string, RecordKind>): void {
    this.#ids.clear()
    for (const kind of RECORD_KINDS) this.#lacking[kind].clear()
    for (const [id, kind] of found) this.add(kind, id)
  }

  add(kind: RecordKind, id: string): void {
    this.#ids.add(id)
    if (!this.#tables[kind].has(id)) this.#lacking[kind].add(id)
  }

  /** The record was read, or deleted. */
  remove(kind: RecordKind, id: string): void {
    this.#ids.delete(id)
    this.#lacking[kind].delete(id)
  }
}
