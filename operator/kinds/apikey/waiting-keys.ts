/** ApiKeys of each account that wait for a place, from the oldest to the youngest. A key is added and removed when it is observed. */
import { AgeList, type Aged } from '#policy/age-list.ts'

export class WaitingKeys {
  readonly #lists = new Map<string, AgeList<Aged & { readonly name: string; readonly namespace: string }>>()

  /** @returns the number of older keys that wait in the same account */
  add(account: string, key: Aged & { readonly name: string; readonly namespace: string }): number {
    const list = this.#lists.get(account) ?? new AgeList()
    this.#lists.set(account, list)
    const index = list.indexOf(key)
    return index < 0 ? list.add(key) : index
  }

  delete(account: string, key: Aged): void {
    const list = this.#lists.get(account)
    list?.delete(key)
    if (list?.length === 0) this.#lists.delete(account)
  }

  /** The oldest key that waits. */
  first(account: string): { readonly name: string; readonly namespace: string } | undefined {
    return this.#lists.get(account)?.first
  }
}
