/**
 * All ServedModels in the memory of this process, by name. Served names and aliases share one name space. A name means the oldest object in
 * the namespace of the key, else the oldest object that admits this namespace.
 */
import type { AddressRules } from '#contract/values/backend-address.ts'
import { decodeModelRecord } from '#contract/records/model-record.ts'
import type { RecordLoad, RecordTable } from '../projection/record-table.ts'
import { modelEntry, targetsOf, type ModelEntry } from './model-entry.ts'

/** A name that a key may request, and its model. */
export interface VisibleModel {
  readonly name: string
  readonly entry: ModelEntry
}

/** Maximum number of cached lists. */
const MAX_REMEMBERED = 1_000

/** The models; the follower of the projection fills it. */
export class ModelTable implements RecordTable {
  readonly #rules: AddressRules
  #entries = new Map<string, ModelEntry>()
  /** Oldest first. */
  #byName = new Map<string, ModelEntry[]>()
  /** Lists by namespace, until a model changes: building one means to sort and resolve thousands of names. */
  readonly #visible = new Map<string, readonly VisibleModel[]>()

  constructor(rules: AddressRules) {
    this.#rules = rules
  }

  /**
   * Finds the model that a name means for keys of a namespace.
   * @returns undefined if no model has the name, or none of them admits the namespace. The answer is the same for both, so that no
   * client can distinguish them
   */
  resolve(namespace: string, name: string): ModelEntry | undefined {
    let admitting: ModelEntry | undefined
    for (const entry of this.#byName.get(name) ?? []) {
      if (entry.record.namespace === namespace) return entry
      if (admitting === undefined && entry.admits(namespace)) admitting = entry
    }
    return admitting
  }

  /** Every name that `resolve` answers for a namespace, sorted. */
  visible(namespace: string): readonly VisibleModel[] {
    const known = this.#visible.get(namespace)
    if (known) return known
    const found: VisibleModel[] = []
    for (const name of [...this.#byName.keys()].toSorted()) {
      const entry = this.resolve(namespace, name)
      if (entry !== undefined) found.push({ name, entry })
    }
    if (this.#visible.size >= MAX_REMEMBERED) this.#visible.clear()
    this.#visible.set(namespace, found)
    return found
  }

  /** All models, in no order. */
  entries(): Iterable<ModelEntry> {
    return this.#entries.values()
  }

  put(uid: string, text: string): boolean {
    const entry = this.#read(uid, text)
    if (entry === undefined) return false
    if (entry.record.revision < (this.#entries.get(uid)?.record.revision ?? 0)) return true // batches of a load and the log overlap
    this.delete(uid)
    this.#entries.set(uid, entry)
    for (const name of entry.names) insert(this.#byName, name, entry)
    this.#visible.clear()
    for (const target of targetsOf(entry)) target.health.isRetired = false
    return true
  }

  delete(uid: string): void {
    const entry = this.#entries.get(uid)
    if (entry === undefined) return
    this.#entries.delete(uid)
    this.#visible.clear()
    for (const name of entry.names) {
      const rest = (this.#byName.get(name) ?? []).filter((other) => other !== entry)
      if (rest.length === 0) this.#byName.delete(name)
      else this.#byName.set(name, rest)
    }
    for (const target of targetsOf(entry)) target.health.isRetired = true
  }

  has(uid: string): boolean {
    return this.#entries.has(uid)
  }

  load(): RecordLoad {
    const entries = new Map<string, ModelEntry>()
    return {
      put: (uid, text) => {
        const entry = this.#read(uid, text)
        const kept = entry ?? entries.get(uid) ?? this.#entries.get(uid)
        if (kept !== undefined) entries.set(uid, kept)
        return entry !== undefined
      },
      delete: (uid) => void entries.delete(uid),
      commit: () => this.#replace(entries),
    }
  }

  #replace(entries: Map<string, ModelEntry>): void {
    const byName = new Map<string, ModelEntry[]>()
    for (const entry of this.#entries.values()) for (const target of targetsOf(entry)) target.health.isRetired = true
    for (const entry of [...entries.values()].sort(byAge)) {
      for (const name of entry.names) append(byName, name, entry)
      for (const target of targetsOf(entry)) target.health.isRetired = false
    }
    this.#entries = entries
    this.#byName = byName
    this.#visible.clear()
  }

  #read(uid: string, text: string): ModelEntry | undefined {
    try {
      return modelEntry(decodeModelRecord(text), this.#rules, this.#entries.get(uid))
    } catch {
      return undefined // of a newer version or damaged: the caller reports the record in its heartbeat, and the last good one stays
    }
  }
}

/** Inserts an entry by age without a sort, because thousands of models may have one name. */
function insert(byName: Map<string, ModelEntry[]>, name: string, entry: ModelEntry): void {
  const others = byName.get(name) ?? []
  const at = others.findIndex((other) => byAge(entry, other) < 0)
  byName.set(name, others.toSpliced(at < 0 ? others.length : at, 0, entry))
}

function append(byName: Map<string, ModelEntry[]>, name: string, entry: ModelEntry): void {
  const others = byName.get(name)
  if (others) others.push(entry)
  else byName.set(name, [entry])
}

function byAge({ record: a }: ModelEntry, { record: b }: ModelEntry): number {
  return a.createdMs - b.createdMs || (a.uid < b.uid ? -1 : 1)
}
