import { type ObjectRef, refKey } from '../kube/port.ts'

/** Which objects use what: refs by the key of the thing that they use. */
export class RefIndex {
  readonly #refs = new Map<string, Map<string, ObjectRef>>()

  /** Objects that use it. */
  of(key: string): readonly ObjectRef[] {
    return [...(this.#refs.get(key)?.values() ?? [])]
  }

  /** Replaces what one object uses. @returns the keys that nobody uses any more */
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
