import type { Log } from '../process/log.ts'

/** Credentials for backends, by the SHA-256 of their value, in memory. They come with the mounted folder and never through Redis. */
export class BackendCredentials {
  readonly #log: Log
  #values: ReadonlyMap<string, string> = new Map()
  #reported = new Set<string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Takes what the folder holds now. */
  replace(values: ReadonlyMap<string, string>): void {
    this.#values = values
    this.#reported = new Set()
  }

  /**
   * The credential of a backend. The former one stays in use until the newest one is mounted, since rotation must not be an outage; it is
   * logged once per change of the folder.
   * @param sum SHA-256 of the newest one, hex
   * @param former that of the one before it
   * @returns undefined when neither is mounted: the backend is not ready on this pod
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
