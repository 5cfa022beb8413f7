/** What this process remembers of ServedModels and cannot derive from the caches. Losing it costs writes that change nothing. */
import type { Clock } from '../../gateway/process/clock.ts'
import { type ObjectRef, refKey } from '../kube/port.ts'
import type { Allowed } from './publishing.ts'

interface Handed<T> {
  readonly value: T
  readonly atMs: number
}

/** The record that the projection was asked to hold. */
export interface WantedRecord {
  /** undefined: no record. */
  readonly text: string | undefined
  readonly allowedNamespaces: Allowed
}

interface Memory {
  wanted?: Handed<WantedRecord>
  /** Identity of what the mounted Secrets were given. */
  mounted?: Handed<string>
  expectedRevision?: number
  isKept?: boolean
}

/** By uid, and which uid had which ref. */
export class ModelMemory {
  readonly #clock: Clock
  readonly #models = new Map<string, Memory>()
  readonly #uids = new Map<string, string>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The object that was projected under this ref. */
  uidOf(ref: ObjectRef): string | undefined {
    return this.#uids.get(refKey(ref))
  }

  wanted(uid: string): WantedRecord | undefined {
    return this.#models.get(uid)?.wanted?.value
  }

  wantedForMs(uid: string): number {
    return this.#ageMs(this.#models.get(uid)?.wanted)
  }

  setWanted(ref: ObjectRef, uid: string, wanted: WantedRecord): void {
    const memory = this.#of(ref, uid)
    memory.wanted = { value: wanted, atMs: this.#clock.monotonic() }
    delete memory.isKept
  }

  mounted(uid: string): string | undefined {
    return this.#models.get(uid)?.mounted?.value
  }

  mountedForMs(uid: string): number {
    return this.#ageMs(this.#models.get(uid)?.mounted)
  }

  /** @param isOld the pods have had it before this process started, as far as anybody can know */
  setMounted(ref: ObjectRef, uid: string, mounted: string, isOld = false): void {
    this.#of(ref, uid).mounted = { value: mounted, atMs: isOld ? -Infinity : this.#clock.monotonic() }
  }

  /** A record of an earlier process may stand in Redis; it stays until this process has one to replace it. */
  isKept(uid: string): boolean {
    return this.#models.get(uid)?.isKept === true
  }

  setKept(ref: ObjectRef, uid: string): void {
    this.#of(ref, uid).isKept = true
  }

  isExpected(uid: string, revision: number): boolean {
    return this.#models.get(uid)?.expectedRevision === revision
  }

  setExpected(ref: ObjectRef, uid: string, revision: number): void {
    this.#of(ref, uid).expectedRevision = revision
  }

  forget(ref: ObjectRef, uid: string): void {
    this.#models.delete(uid)
    if (this.#uids.get(refKey(ref)) === uid) this.#uids.delete(refKey(ref))
  }

  #of(ref: ObjectRef, uid: string): Memory {
    const known = this.#models.get(uid) ?? {}
    this.#models.set(uid, known)
    this.#uids.set(refKey(ref), uid)
    return known
  }

  #ageMs(handed: Handed<unknown> | undefined): number {
    return handed === undefined ? Infinity : this.#clock.monotonic() - handed.atMs
  }
}
