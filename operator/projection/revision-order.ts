/** Keys in the order of their revisions. Revisions mostly arrive in rising order, so adding one is mostly constant time. */
export class RevisionOrder {
  /** Rising. A revision whose keys were deleted stays until its turn. */
  #revs: number[] = []
  readonly #keys = new Map<number, Set<string>>()

  add(rev: number, key: string): void {
    const keys = this.#keys.get(rev)
    if (keys) {
      keys.add(key)
      return
    }
    this.#keys.set(rev, new Set([key]))
    let at = this.#revs.length
    while (at > 0 && (this.#revs[at - 1] ?? 0) > rev) at -= 1
    this.#revs.splice(at, 0, rev)
  }

  delete(rev: number, key: string): void {
    this.#keys.get(rev)?.delete(key)
  }

  /** Removes and returns the keys of all revisions up to and including `watermark`, in order. */
  takeUpTo(watermark: number): readonly string[] {
    const above = this.#revs.findIndex((rev) => rev > watermark)
    const passed = this.#revs.splice(0, above < 0 ? this.#revs.length : above)
    return passed.flatMap((rev) => {
      const keys = this.#keys.get(rev) ?? []
      this.#keys.delete(rev)
      return [...keys]
    })
  }
}
