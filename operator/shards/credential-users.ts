import type { CredentialEntry } from './credential-codec.ts'

/** The credentials of one ServedModel. */
interface User {
  /** undefined if the model is unreadable. */
  readonly namespace: string | undefined
  readonly sums: ReadonlySet<string>
}

/** Maps ServedModels to their backend credentials, and each credential to the models that use it. */
export class CredentialUsers {
  readonly #users = new Map<string, User>()
  readonly #uids = new Map<string, Set<string>>()
  readonly #namespaces = new Map<string, Set<string>>()
  readonly #sizes = new Map<string, number>()

  /** Whether this model is known. */
  has(uid: string): boolean {
    return this.#users.has(uid)
  }

  /** @returns undefined for an unknown or unreadable model */
  namespaceOf(uid: string): string | undefined {
    return this.#users.get(uid)?.namespace
  }

  /** Replaces the credentials of a model. @returns sums that no model uses any more */
  set(uid: string, namespace: string, credentials: readonly CredentialEntry[]): readonly string[] {
    for (const { sum, value } of credentials) this.#sizes.set(sum, Buffer.byteLength(value))
    return this.#replace(uid, { namespace, sums: new Set(credentials.map(({ sum }) => sum)) })
  }

  /** Keeps the credentials that an unreadable model used before. Their size is unknown. */
  keep(uid: string, sums: readonly string[]): void {
    this.#replace(uid, { namespace: undefined, sums: new Set(sums) })
  }

  /** Removes a deleted model. @returns sums that no model uses any more */
  delete(uid: string): readonly string[] {
    return this.#replace(uid, undefined)
  }

  isUsed(sum: string): boolean {
    return this.#uids.has(sum)
  }

  /** Models that use a credential. */
  of(sum: string): Iterable<string> {
    return this.#uids.get(sum) ?? []
  }

  /** The credentials of a model. */
  sumsOf(uid: string): Iterable<string> {
    return this.#users.get(uid)?.sums ?? []
  }

  /** Bytes of all distinct credentials that the models of a namespace would use if this model used these. */
  bytesWith(uid: string, namespace: string, credentials: readonly CredentialEntry[]): number {
    const sizes = new Map(credentials.map(({ sum, value }) => [sum, Buffer.byteLength(value)]))
    for (const other of this.#namespaces.get(namespace) ?? []) {
      if (other !== uid) for (const sum of this.sumsOf(other)) sizes.set(sum, this.#sizes.get(sum) ?? 0)
    }
    return [...sizes.values()].reduce((total, bytes) => total + bytes, 0)
  }

  #move(uid: string, namespace: string | undefined): void {
    const former = this.#users.get(uid)?.namespace
    if (former === namespace) return
    if (former !== undefined) this.#namespaces.get(former)?.delete(uid)
    if (former !== undefined && this.#namespaces.get(former)?.size === 0) this.#namespaces.delete(former)
    if (namespace !== undefined) this.#namespaces.set(namespace, (this.#namespaces.get(namespace) ?? new Set()).add(uid))
  }

  #replace(uid: string, next: User | undefined): readonly string[] {
    const former = this.#users.get(uid)?.sums ?? new Set<string>()
    this.#move(uid, next?.namespace)
    if (next) this.#users.set(uid, next)
    else this.#users.delete(uid)
    for (const sum of next?.sums ?? []) this.#uids.set(sum, (this.#uids.get(sum) ?? new Set()).add(uid))
    return [...former].filter((sum) => next?.sums.has(sum) !== true && this.#leave(uid, sum))
  }

  /** @returns whether the credential has lost its last user */
  #leave(uid: string, sum: string): boolean {
    const uids = this.#uids.get(sum)
    uids?.delete(uid)
    if (uids && uids.size > 0) return false
    this.#uids.delete(sum)
    this.#sizes.delete(sum)
    return true
  }
}
