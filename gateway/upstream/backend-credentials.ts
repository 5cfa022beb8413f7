import type { Log } from '#platform/log.ts'

/** Credentials for backends in memory, by the SHA-256 of their value. They are read from the mounted folder, never from Redis. */
export class BackendCredentials {
  readonly #log: Log
  #values: ReadonlyMap<string, string> = new Map()
  #reported = new Set<string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Replaces all credentials by those of the folder. */
  replace(values: ReadonlyMap<string, string>): void {
    this.#values = values
    this.#reported = new Set()
  }

  /**
   * Finds the credential of a backend. The former one stays in use until the newest one is mounted, because rotation must not cause an
   * outage. The log says so once per change of the folder.
   * @param sum SHA-256 of the newest one, hex
   * @param former SHA-256 of the one before, hex
   * @returns undefined if neither is mounted; this pod then does not use the backend
   */
  credential(sum: string, former: string | null): string | undefined {
    const newest = this.#values.get(sum)
    if (newest !== undefined) return newest
    const last = former === null ? undefined : this.#values.get(former)
    if (last === undefined) this.#report(sum, 'is not mounted; the backends that need it are left out until it is')
    else this.#report(sum, 'is not mounted yet; the one before it stays in use until it is')
    return last
  }

  #report(sum: string, what: string): void {
    if (this.#reported.has(sum)) return
    this.#reported.add(sum)
    this.#log.warn(`upstream credential ${sum.slice(0, 12)}… ${what}`)
  }
}
