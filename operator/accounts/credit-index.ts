/** What each account has been credited, and which Credits there are: about 60 bytes per Credit beside its name. Pure except for its memory. */

/** Of one account, in micro-units. */
interface Total {
  readonly number: number
  sum: bigint
  /** Sum of the amounts above 0. */
  gross: bigint
}

const FIRST_SIZE = 256

export class CreditIndex {
  /** Place of each Credit in both arrays, by its name. */
  readonly #places = new Map<string, number>()
  #micros = new Float64Array(FIRST_SIZE)
  /** Numbers of the accounts. */
  #owners = new Uint32Array(FIRST_SIZE)
  readonly #totals = new Map<string, Total>()
  /** Names of the accounts by number. */
  readonly #names: string[] = []

  get size(): number {
    return this.#places.size
  }

  has(id: string): boolean {
    return this.#places.has(id)
  }

  /** Number of the Credits that were put before this one. */
  placeOf(id: string): number | undefined {
    return this.#places.get(id)
  }

  /** @returns names of the accounts whose sum has changed */
  put(id: string, account: string, micros: number): ReadonlySet<string> {
    const former = this.#find(id)
    if (former?.account === account && former.micros === micros) return new Set()
    if (former) this.#add(former.account, -1, former.micros)
    const place = former?.place ?? this.#nextPlace(id)
    this.#micros[place] = micros
    this.#owners[place] = this.#add(account, 1, micros)
    return new Set(former ? [former.account, account] : [account])
  }

  sumOf(account: string): bigint {
    return this.#totals.get(account)?.sum ?? 0n
  }

  /** Sum of the amounts above 0. */
  grossOf(account: string): bigint {
    return this.#totals.get(account)?.gross ?? 0n
  }

  #find(id: string): { readonly place: number; readonly account: string; readonly micros: number } | undefined {
    const place = this.#places.get(id)
    if (place === undefined) return undefined
    return { place, account: this.#names[this.#owners[place] ?? -1] ?? '', micros: this.#micros[place] ?? 0 }
  }

  /** @param change 1 adds a Credit, -1 takes it back @returns the number of the account */
  #add(account: string, change: 1 | -1, micros: number): number {
    const total = this.#totalOf(account)
    const amount = BigInt(micros * change)
    total.sum += amount
    if (micros > 0) total.gross += amount
    return total.number
  }

  #totalOf(account: string): Total {
    const known = this.#totals.get(account)
    if (known) return known
    const total = { number: this.#names.push(account) - 1, sum: 0n, gross: 0n }
    this.#totals.set(account, total)
    return total
  }

  #nextPlace(id: string): number {
    const place = this.#places.size
    if (place >= this.#micros.length) this.#grow()
    this.#places.set(id, place)
    return place
  }

  #grow(): void {
    const size = this.#micros.length * 2
    const [micros, owners] = [new Float64Array(size), new Uint32Array(size)]
    micros.set(this.#micros)
    owners.set(this.#owners)
    this.#micros = micros
    this.#owners = owners
  }
}
