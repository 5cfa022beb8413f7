/** What a translation has left out or altered, by the names of the fields in the client's request. Clients read them as two headers. */

/** More names than this would fill a header. */
const MAX_NAMES = 20
const HEADER_NAME = /^[a-z0-9_.-]{1,80}$/i

export class Changes {
  readonly #dropped = new Set<string>()
  readonly #adjusted = new Set<string>()
  #unknown = 0

  /** @param name of a field that this gateway knows */
  drop(name: string): void {
    if (this.#dropped.has(name)) return
    if (HEADER_NAME.test(name) && this.#dropped.size < MAX_NAMES) this.#dropped.add(name)
    else this.#unknown++
  }

  /** Counts a field that this gateway does not know: its name consists of the client's bytes. */
  dropUnknown(): void {
    this.#unknown++
  }

  adjust(name: string): void {
    this.#adjusted.add(name)
  }

  /** Headers of the answer: name, value, name, value … */
  headers(): string[] {
    const dropped = [...this.#dropped, ...(this.#unknown > 0 ? [`unknown=${this.#unknown}`] : [])]
    return [
      ...(dropped.length > 0 ? ['x-headgate-dropped', dropped.join(', ')] : []),
      ...(this.#adjusted.size > 0 ? ['x-headgate-adjusted', [...this.#adjusted].join(', ')] : []),
    ]
  }
}
