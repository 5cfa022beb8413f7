/**
 * Items that wait, by owner. The owners take turns, whatever number of items each has, and so do the owners within an owner: tenants, then
 * their keys. The items of one owner keep their order.
 */
export class TurnQueue<T> {
  readonly #items: T[] = []
  /** In the order of their next turns. */
  readonly #owners = new Map<string, TurnQueue<T>>()

  get isEmpty(): boolean {
    return this.#items.length === 0 && this.#owners.size === 0
  }

  /** @param owners from the widest to the narrowest; all items of a queue have the same number of owners */
  push(item: T, [owner, ...within]: readonly string[]): void {
    if (owner === undefined) {
      this.#items.push(item)
      return
    }
    const queue = this.#owners.get(owner) ?? new TurnQueue<T>()
    this.#owners.set(owner, queue)
    queue.push(item, within)
  }

  /** Takes the next item. @param mayTake whether an owner of the first level may have its turn now */
  take(mayTake: (owner: string) => boolean = () => true): T | undefined {
    for (const [owner, queue] of this.#owners) {
      if (!mayTake(owner)) continue
      const item = queue.take()
      this.#owners.delete(owner)
      if (!queue.isEmpty) this.#owners.set(owner, queue)
      return item
    }
    return this.#items.shift()
  }
}
