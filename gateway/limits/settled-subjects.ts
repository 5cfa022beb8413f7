import type { Cancel, Clock } from '#platform/clock.ts'

interface SettledSubjectsDeps {
  readonly clock: Clock
  /** Adds uids to the set that the operator reads. */
  readonly add: (uids: readonly string[]) => Promise<unknown>
}

const FLUSH_MS = 250
const MOST_AT_ONCE = 500
/** Maximum number of waiting names, if thousands of keys spend in the same moment. */
const MOST_WAITING = 20_000

/**
 * Names the subjects that have spent from a budget, so that the operator reads only those for its checkpoints. One command per flush. A
 * lost name makes a checkpoint older but not wrong, so a failed command is not repeated.
 */
export class SettledSubjects {
  readonly #deps: SettledSubjectsDeps
  readonly #waiting = new Set<string>()
  #cancel: Cancel | undefined

  constructor(deps: SettledSubjectsDeps) {
    this.#deps = deps
  }

  /** @param uid of an ApiKey or Account */
  add(uid: string): void {
    if (this.#waiting.size >= MOST_WAITING) return
    this.#waiting.add(uid)
    this.#cancel ??= this.#deps.clock.after(FLUSH_MS, () => void this.flush())
  }

  /** Sends the next names; the rest follows at the next flush. Never rejects. */
  async flush(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    const uids: string[] = []
    for (const uid of this.#waiting) if (uids.push(uid) === MOST_AT_ONCE) break
    if (uids.length === 0) return
    for (const uid of uids) this.#waiting.delete(uid)
    if (this.#waiting.size > 0) this.#cancel = this.#deps.clock.after(FLUSH_MS, () => void this.flush())
    await this.#deps.add(uids).catch(() => undefined) // the operator reads every subject every few seconds, and named ones first
  }

  async close(): Promise<void> {
    await this.flush()
    this.#cancel?.()
  }
}
