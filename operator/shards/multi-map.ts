/** Several ids by key. A key with one id, as nearly always, holds the id alone: a set for each of a hundred thousand keys would need much memory. */
export class MultiMap<Key extends string> {
  readonly #ids = new Map<Key, string | Set<string>>()

  add(key: Key, id: string): void {
    const ids = this.#ids.get(key)
    if (typeof ids === 'object') ids.add(id)
    else if (ids !== id) this.#ids.set(key, ids === undefined ? id : new Set([ids, id]))
  }

  /** @returns whether the key has no id any more */
  delete(key: Key, id: string): boolean {
    const ids = this.#ids.get(key)
    if (typeof ids === 'object') ids.delete(id)
    if (ids === id || (typeof ids === 'object' && ids.size === 0)) this.#ids.delete(key)
    return !this.#ids.has(key)
  }

  has(key: Key): boolean {
    return this.#ids.has(key)
  }

  get(key: Key): Iterable<string> {
    const ids = this.#ids.get(key) ?? []
    return typeof ids === 'string' ? [ids] : ids
  }

  count(key: Key): number {
    const ids = this.#ids.get(key)
    return typeof ids === 'object' ? ids.size : ids === undefined ? 0 : 1
  }
}
