/** Keys in the order of their revisions. Revisions mostly arrive in ascending order, so `add` mostly takes constant time. */
export class RevisionOrder {
  /** In ascending order. A revision whose keys were deleted stays until `takeUpTo` passes it. */
  #revisions: number[] = []
  readonly #keys = new Map<number, Set<string>>()

  add(revision: number, key: string): void {
    const keys = this.#keys.get(revision)
    if (keys) {
      keys.add(key)
      return
    }
    this.#keys.set(revision, new Set([key]))
    let at = this.#revisions.length
    while (at > 0 && (this.#revisions[at - 1] ?? 0) > revision) at -= 1
    this.#revisions.splice(at, 0, revision)
  }

  delete(revision: number, key: string): void {
    this.#keys.get(revision)?.delete(key)
  }

  /** Removes and returns the keys of all revisions up to and including `watermark`, in order. */
  takeUpTo(watermark: number): readonly string[] {
    const above = this.#revisions.findIndex((revision) => revision > watermark)
    const passed = this.#revisions.splice(0, above < 0 ? this.#revisions.length : above)
    return passed.flatMap((revision) => {
      const keys = this.#keys.get(revision) ?? []
      this.#keys.delete(revision)
      return [...keys]
    })
  }
}
