import { type ObjectRef, refKey } from '#kube/port.ts'

/** Maps the key of a shared resource to the refs of its users. */
export class RefIndex {
  readonly #refs = new Map<string, Map<string, ObjectRef>>()

  /** Users of the resource. */
  of(key: string): readonly ObjectRef[] {
    return [...(this.#refs.get(key)?.values() ?? [])]
  }

  /** Replaces the resources of one user. @returns the keys that have lost their last user */
  move(ref: ObjectRef, before: readonly string[], after: readonly string[]): readonly string[] {
    for (const key of before) this.#refs.get(key)?.delete(refKey(ref))
    for (const key of after) {
      const users = this.#refs.get(key) ?? new Map<string, ObjectRef>()
      users.set(refKey(ref), ref)
      this.#refs.set(key, users)
    }
    const unused = [...new Set(before)].filter((key) => this.#refs.get(key)?.size === 0)
    for (const key of unused) this.#refs.delete(key)
    return unused
  }
}
