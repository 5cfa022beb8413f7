interface Counted {
  readonly bytes: number
  readonly users: number
}

/** Bytes of the distinct credentials of one namespace. A change reads its own credentials alone, never those of all models. */
export class CredentialBytes {
  readonly #counts = new Map<string, Counted>()
  #total = 0

  get isEmpty(): boolean {
    return this.#counts.size === 0
  }

  /** @param credentials bytes of each credential of one model, by its sum */
  add(credentials: ReadonlyMap<string, number>): void {
    for (const [sum, bytes] of credentials) {
      const { users = 0 } = this.#counts.get(sum) ?? {}
      if (users === 0) this.#total += bytes
      this.#counts.set(sum, { bytes: this.#counts.get(sum)?.bytes ?? bytes, users: users + 1 })
    }
  }

  delete(credentials: ReadonlyMap<string, number>): void {
    for (const sum of credentials.keys()) {
      const counted = this.#counts.get(sum)
      if (counted === undefined) continue
      if (counted.users > 1) this.#counts.set(sum, { ...counted, users: counted.users - 1 })
      else {
        this.#total -= counted.bytes
        this.#counts.delete(sum)
      }
    }
  }

  /** The total if one model had the credentials `after` in place of `before`. */
  totalWith(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): number {
    this.delete(before)
    this.add(after)
    const total = this.#total
    this.delete(after)
    this.add(before)
    return total
  }
}
