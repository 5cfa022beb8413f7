import type { Log } from '../shared/log.ts'
import type { UpstreamToken } from './keyring-files.ts'

/** Tokens for model servers, by file name, in memory. They come with the mounted folder and never through Redis. */
export class UpstreamTokens {
  readonly #log: Log
  #tokens: ReadonlyMap<string, UpstreamToken> = new Map()
  #reported = new Set<string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Takes what the folder holds now. */
  replace(tokens: ReadonlyMap<string, UpstreamToken>): void {
    this.#tokens = tokens
    this.#reported = new Set()
  }

  /**
   * The token of a backend. An older one than the model record names stays in use, since rotation must not be an outage; it is logged
   * once per change of the folder.
   * @param sum SHA-256 of the newest token, hex
   * @returns undefined when the file is missing: the backend is not ready on this pod
   */
  token(file: string, sum: string): string | undefined {
    const found = this.#tokens.get(file)
    if (found && found.sum !== sum)
      this.#report(file, 'is older than the model record wants; it is used until the mounted volume is refreshed')
    if (!found) this.#report(file, 'is not mounted; the backend that needs it is left out until it is')
    return found?.token
  }

  #report(file: string, what: string): void {
    if (this.#reported.has(file)) return
    this.#reported.add(file)
    this.#log.warn(`upstream token ${file} ${what}`)
  }
}
