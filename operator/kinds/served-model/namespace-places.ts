/** The bound of ServedModels per namespace: the oldest ones have a place, the others wait. */
import type { ObjectRef } from '#kube/port.ts'
import { AgeList, type Aged } from '#policy/age-list.ts'

export interface PlaceSeeker extends Aged {
  readonly ref: ObjectRef
}

export interface PlaceChanges<T> {
  readonly gained: T | undefined
  readonly lost: T | undefined
}

const NOTHING = { gained: undefined, lost: undefined }

/** Assigns the places of each namespace. One change affects at most one other object. */
export class NamespacePlaces<T extends PlaceSeeker> {
  readonly limit: number
  readonly #byUid = new Map<string, T>()
  readonly #byNamespace = new Map<string, AgeList<T>>()

  constructor(limit: number) {
    this.limit = limit
  }

  put(seeker: T): PlaceChanges<T> {
    const { namespace } = seeker.ref
    const known = this.#byUid.get(seeker.uid)
    const list = this.#byNamespace.get(namespace) ?? new AgeList<T>()
    if (known !== undefined) list.delete(known)
    this.#byUid.set(seeker.uid, seeker)
    this.#byNamespace.set(namespace, list)
    const index = list.add(seeker)
    const hadPlace = known !== undefined // the same uid has the same age, and so the same place
    return hadPlace || index >= this.limit ? NOTHING : { gained: undefined, lost: list.at(this.limit) }
  }

  delete(uid: string): PlaceChanges<T> {
    const known = this.#byUid.get(uid)
    if (known === undefined) return NOTHING
    this.#byUid.delete(uid)
    const list = this.#byNamespace.get(known.ref.namespace)
    const index = list?.delete(known) ?? -1
    if (list?.length === 0) this.#byNamespace.delete(known.ref.namespace)
    return index < 0 || index >= this.limit ? NOTHING : { gained: list?.at(this.limit - 1), lost: undefined }
  }

  get(uid: string): T | undefined {
    return this.#byUid.get(uid)
  }

  hasPlace(uid: string): boolean {
    const known = this.#byUid.get(uid)
    if (known === undefined) return false
    const index = this.#byNamespace.get(known.ref.namespace)?.indexOf(known) ?? -1
    return index >= 0 && index < this.limit
  }
}
