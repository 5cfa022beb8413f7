import type { RecordTable } from './record-table.ts'
import { perKind, type RecordKind, recordKinds } from '#contract/records/record-kinds.ts'
import { MAX_UNREADABLE_RECORDS } from '#contract/records/revision-log.ts'

/** Records whose newest text this process cannot read, because another version wrote it or it is damaged. */
export class UnreadableRecords {
  readonly #tables: Readonly<Record<RecordKind, Pick<RecordTable, 'has'>>>
  readonly #ids = new Set<string>()
  /** Those without any readable older text. */
  readonly #lacking = perKind(() => new Set<string>())

  constructor(tables: Readonly<Record<RecordKind, Pick<RecordTable, 'has'>>>) {
    this.#tables = tables
  }

  get reported(): string[] {
    return [...this.#ids].slice(0, MAX_UNREADABLE_RECORDS)
  }

  get size(): number {
    return this.#ids.size
  }

  /** Whether a key exists without any readable text. An unknown Credential may then be its. */
  get lacksKeys(): boolean {
    return this.#lacking.key.size > 0
  }

  get lacksAny(): boolean {
    return Object.values(this.#lacking).some(({ size }) => size > 0)
  }

  /** Stores the unreadable ids of a full load that the tables serve. */
  replace(found: ReadonlyMap<string, RecordKind>): void {
    this.#ids.clear()
    for (const kind of recordKinds()) this.#lacking[kind].clear()
    for (const [id, kind] of found) this.add(kind, id)
  }

  add(kind: RecordKind, id: string): void {
    this.#ids.add(id)
    if (!this.#tables[kind].has(id)) this.#lacking[kind].add(id)
  }

  /** Removes an id: its record was read or deleted. */
  remove(kind: RecordKind, id: string): void {
    this.#ids.delete(id)
    this.#lacking[kind].delete(id)
  }
}
