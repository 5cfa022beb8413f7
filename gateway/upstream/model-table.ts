/** All ServedModels in the memory of this process, by name. */
import type { AddressRules } from '#contract/values/backend-address.ts'
import { decodeModelRecord } from '#contract/records/model-record.ts'
import { ModelNames } from '#policy/model-names.ts'
import type { RecordLoad, RecordTable } from '../projection/projection-source.ts'
import { modelEntry, targetsOf, type ModelEntry } from './model-entry.ts'

export interface VisibleModel {
  readonly name: string
  readonly entry: ModelEntry
}

const MAX_REMEMBERED = 1_000

/** The models; the follower of the projection fills it. */
export class ModelTable implements RecordTable {
  readonly #rules: AddressRules
  #entries = new Map<string, ModelEntry>()
  #names = new ModelNames<ModelEntry>()
  /** Lists by namespace, until a model changes: building one means to sort and resolve thousands of names. */
  readonly #visible = new Map<string, readonly VisibleModel[]>()

  constructor(rules: AddressRules) {
    this.#rules = rules
  }

  resolve(namespace: string, name: string): ModelEntry | undefined {
    return this.#names.resolve(namespace, name)
  }

  /** Every name that `resolve` answers for a namespace, sorted. The array stays the same object until a model changes. */
  visible(namespace: string): readonly VisibleModel[] {
    const known = this.#visible.get(namespace)
    if (known) return known
    const found: VisibleModel[] = []
    for (const name of [...this.#names.names].sort()) {
      const entry = this.resolve(namespace, name)
      if (entry !== undefined) found.push({ name, entry })
    }
    if (this.#visible.size >= MAX_REMEMBERED) this.#visible.clear()
    this.#visible.set(namespace, found)
    return found
  }

  entries(): Iterable<ModelEntry> {
    return this.#entries.values()
  }

  put(uid: string, text: string): boolean {
    const entry = this.#read(uid, text)
    if (entry === undefined) return false
    if (entry.record.revision < (this.#entries.get(uid)?.record.revision ?? 0)) return true // batches of a load and the log overlap
    this.delete(uid)
    this.#entries.set(uid, entry)
    this.#names.add(entry)
    this.#visible.clear()
    for (const target of targetsOf(entry)) target.health.isRetired = false
    return true
  }

  delete(uid: string): void {
    const entry = this.#entries.get(uid)
    if (entry === undefined) return
    this.#entries.delete(uid)
    this.#visible.clear()
    this.#names.delete(entry)
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
      commit: () => {
        const names = new ModelNames<ModelEntry>()
        for (const entry of this.#entries.values()) for (const target of targetsOf(entry)) target.health.isRetired = true
        for (const entry of entries.values()) {
          names.add(entry)
          for (const target of targetsOf(entry)) target.health.isRetired = false
        }
        this.#entries = entries
        this.#names = names
        this.#visible.clear()
      },
    }
  }

  #read(uid: string, text: string): ModelEntry | undefined {
    try {
      return modelEntry(decodeModelRecord(text), this.#rules, this.#entries.get(uid))
    } catch {
      return undefined // of a newer version or damaged: the caller reports the record in its heartbeat, and the last good one stays
    }
  }
}
