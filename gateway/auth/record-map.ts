/**
 * Records of one kind by uid, as the projection has them. The last good record of a uid stays while a newer text cannot be read, unless that
 * text needs a feature that this version lacks.
 */
import { hasUnmetNeeds, readWithoutNeeds } from '#contract/records/format.ts'
import type { RecordLoad, RecordTable } from '../projection/projection-source.ts'

interface Revised {
  readonly uid: string
  readonly revision: number
  readonly generation: number
  readonly state?: string
}

export class RecordMap<R extends Revised> implements RecordTable {
  readonly #decode: (text: string) => R
  readonly #onChanged: (uid: string) => void
  #records = new Map<string, R>()

  /** @param onChanged called with the uid of each record that is another one now, or gone */
  constructor(decode: (text: string) => R, onChanged: (uid: string) => void = () => undefined) {
    this.#decode = decode
    this.#onChanged = onChanged
  }

  get(uid: string): R | undefined {
    return this.#records.get(uid)
  }

  has(uid: string): boolean {
    return this.#records.has(uid)
  }

  put(uid: string, text: string): boolean {
    const record = this.#read(uid, text)
    if (record && keepNewer(this.#records, record)) this.#onChanged(uid)
    if (!record && hasUnmetNeeds(text)) this.delete(uid)
    return record !== undefined
  }

  delete(uid: string): void {
    if (this.#records.delete(uid)) this.#onChanged(uid)
  }

  /**
   * Applies records of the mounted folder to known ones: a newer manifest, and the end of an object, count whatever Redis says. The revision
   * stays, so that the next change in Redis counts again.
   */
  override(texts: readonly string[]): void {
    for (const text of texts) {
      const refused = readWithoutNeeds(text, this.#decode)
      const record = refused ?? this.#read(undefined, text)
      const known = record && this.#records.get(record.uid)
      if (!record || !known || !supersedes(record, known)) continue
      if (refused) this.#records.delete(record.uid)
      else this.#records.set(record.uid, { ...record, revision: known.revision })
      this.#onChanged(record.uid)
    }
  }

  load(): RecordLoad {
    const fresh = new Map<string, R>()
    const unreadable = new Set<string>()
    return {
      put: (uid, text) => {
        const record = this.#read(uid, text)
        if (record) keepNewer(fresh, record)
        if (record || hasUnmetNeeds(text)) unreadable.delete(uid)
        else unreadable.add(uid)
        if (!record && !unreadable.has(uid)) fresh.delete(uid)
        return record !== undefined
      },
      delete: (uid) => {
        fresh.delete(uid)
        unreadable.delete(uid)
      },
      commit: () => {
        const former = this.#records
        for (const uid of unreadable) {
          const lastGood = fresh.has(uid) ? undefined : former.get(uid)
          if (lastGood) fresh.set(uid, lastGood)
        }
        this.#records = fresh
        for (const uid of new Set([...former.keys(), ...fresh.keys()])) if (former.get(uid) !== fresh.get(uid)) this.#onChanged(uid)
      },
    }
  }

  /** @param uid that the record must have; undefined: any */
  #read(uid: string | undefined, text: string): R | undefined {
    try {
      const record = this.#decode(text)
      return uid === undefined || record.uid === uid ? record : undefined
    } catch {
      return undefined // the caller reports the uid in its heartbeat
    }
  }
}

function supersedes(record: Revised, known: Revised): boolean {
  return record.generation > known.generation || (record.state === 'Deleted' && known.state !== 'Deleted')
}

/** Batches of a load and entries of the log overlap. */
function keepNewer<R extends Revised>(records: Map<string, R>, record: R): boolean {
  const former = records.get(record.uid)
  if (former && former.revision > record.revision) return false
  records.set(record.uid, record)
  return true
}
