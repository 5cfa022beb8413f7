import type { Log } from '#platform/log.ts'
import type { WantedCredential } from './model-table.ts'

/**
 * Credentials for backends in memory, by the SHA-256 of their value. They are read from the mounted folder, never from Redis. Records from
 * Redis only name them, so a credential is used only where the operator has proven that it may be.
 */
export class BackendCredentials {
  readonly #log: Log
  #values: ReadonlyMap<string, string> = new Map()
  #reported = new Set<string>()
  /** What was found for each: a proof costs a hash of the addresses. */
  #found = new WeakMap<WantedCredential, string | undefined>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Replaces all credentials by those of the folder. */
  replace(values: ReadonlyMap<string, string>): void {
    this.#values = values
    this.#reported = new Set()
    this.#found = new WeakMap()
  }

  /**
   * Finds the credential of a backend. The former one stays in use until the newest one is mounted, because rotation must not cause an
   * outage. The log says so once per change of the folder.
   * @returns undefined if neither is mounted, or not for these addresses; this pod then does not use the backend
   */
  credential(wanted: WantedCredential): string | undefined {
    if (!this.#found.has(wanted)) this.#found.set(wanted, this.#find(wanted))
    return this.#found.get(wanted)
  }

  #find(wanted: WantedCredential): string | undefined {
    const newest = this.#values.get(wanted.sum)
    if (newest !== undefined) return this.#proven(wanted, newest, 'newest')
    const last = wanted.former === null ? undefined : this.#values.get(wanted.former)
    if (last === undefined) this.#report(wanted.sum, 'is not mounted; the backends that need it are left out until it is')
    else this.#report(wanted.sum, 'is not mounted yet; the one before it stays in use until it is')
    return last === undefined ? undefined : this.#proven(wanted, last, 'former')
  }

  #proven(wanted: WantedCredential, value: string, which: 'newest' | 'former'): string | undefined {
    if (wanted.isFor(value, which)) return value
    this.#report(wanted.sum, 'is named by a record with an address for which the operator has not given it; find out who writes in Redis')
    return undefined
  }

  #report(sum: string, what: string): void {
    const line = `upstream credential ${sum.slice(0, 12)}… ${what}`
    if (this.#reported.has(line)) return
    this.#reported.add(line)
    this.#log.warn(line)
  }
}
