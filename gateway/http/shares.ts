/** Counts what tenants and keys hold of a resource of the process. A tenant is an account, or the namespace of keys without one. */

/** What one tenant or one key holds now. */
export interface Share {
  held: number
  /** Holders that may still take more or give back. A share with a holder stays, else its owner would get a second one. */
  holders: number
}

/** Whose share a request counts for. A tenant makes any number of keys, so the share of the tenant bounds them together. */
export interface ShareOwner {
  readonly tenant: string
  readonly key: string
}

/** What a share belongs to, as messages name it. */
export type Whose = 'key' | 'account' | 'namespace'

/** Beginning of the tenant of keys with an account. No namespace has a slash in its name. */
const ACCOUNT = 'account/'

/** @param account uid of the account, if the key has one */
export function tenantOf({ account, namespace }: { readonly account?: string | undefined; readonly namespace: string }): string {
  return account === undefined ? namespace : `${ACCOUNT}${account}`
}

export function whoseTenant(tenant: string): Whose {
  return tenant.startsWith(ACCOUNT) ? 'account' : 'namespace'
}

/** Number of shares beyond which those without a holder are dropped; at least, since more may have holders. */
const MIN_SHARES = 10_000

/** Shares by name. They stay in the map, because a Map whose entries change with each request costs more than the counting itself. */
export class Shares {
  readonly #shares = new Map<string, Share>()
  #max = MIN_SHARES

  of(name: string): Share {
    const known = this.#shares.get(name)
    if (known) return known
    if (this.#shares.size >= this.#max) this.#forgetUnused()
    const made = { held: 0, holders: 0 }
    this.#shares.set(name, made)
    return made
  }

  #forgetUnused(): void {
    for (const [name, { holders }] of this.#shares) if (holders === 0) this.#shares.delete(name)
    this.#max = Math.max(MIN_SHARES, 2 * this.#shares.size) // a walk for each new share would cost every request
  }
}
